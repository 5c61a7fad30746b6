//go:build linux

package paths

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/test/e2e"
)

// A cluster is a local cluster, whose nodes have the agent's image.
type cluster struct{ e2e.Local }

// target returns the text of the cluster as a target, with options.
func (c cluster) target(options ...string) string {
	return "kube:?" + strings.Join(append([]string{"kubeconfig=" + c.Kubeconfig}, options...), "&")
}

// onNode runs a command in the network namespace of a node, and returns its standard output.
func (c cluster) onNode(node string, args ...string) ([]byte, error) {
	out, err := c.within(append([]string{"nsenter", "--net=/run/netns/" + node, "--"}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", node, err)
	}
	return out, nil
}

// within runs a command in the cluster's mount namespace, and returns its standard output.
func (c cluster) within(args ...string) ([]byte, error) {
	args = append([]string{"--target", strconv.Itoa(c.Holder), "--mount", "--"}, args...)
	var out, output bytes.Buffer
	cmd := exec.Command("nsenter", args...)
	cmd.Stdout, cmd.Stderr = &out, &output
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, output.Bytes())
	}
	return out.Bytes(), nil
}

// A traffic holds the counters of a device, or their sum over the devices of a kind.
type traffic struct{ rxBytes, rxPackets, txBytes, txPackets uint64 }

func (t traffic) plus(u traffic) traffic {
	return traffic{t.rxBytes + u.rxBytes, t.rxPackets + u.rxPackets, t.txBytes + u.txBytes, t.txPackets + u.txPackets}
}

func (t traffic) minus(u traffic) traffic {
	return traffic{t.rxBytes - u.rxBytes, t.rxPackets - u.rxPackets, t.txBytes - u.txBytes, t.txPackets - u.txPackets}
}

// A reading holds the counters of a node: of its devices by purpose, and of the connections that kube-proxy's rules
// forwarded to Services, by protocol and address of the Service ("tcp 10.96.14.2").
type reading struct {
	underlay, tunnel, pods traffic
	services               map[string]uint64
}

func (r reading) minus(before reading) reading {
	n := reading{
		underlay: r.underlay.minus(before.underlay), tunnel: r.tunnel.minus(before.tunnel), pods: r.pods.minus(before.pods),
		services: map[string]uint64{},
	}
	for key, count := range r.services {
		n.services[key] = count - before.services[key]
	}
	return n
}

// read reads the counters of a node.
func (c cluster) read(node string) (reading, error) {
	links, linksErr := c.onNode(node, "ip", "-statistics", "-json", "link", "show")
	rules, rulesErr := c.onNode(node, "iptables-save", "--counters", "--table", "nat")
	rules6, rules6Err := c.onNode(node, "ip6tables-save", "--counters", "--table", "nat")
	if err := errors.Join(linksErr, rulesErr, rules6Err); err != nil {
		return reading{}, err
	}
	return parseReading(links, append(rules, rules6...))
}

// parseReading parses the output of ip and of iptables-save.
func parseReading(links, rules []byte) (reading, error) {
	var devices []struct {
		Name     string `json:"ifname"`
		Counters struct {
			RX, TX struct{ Bytes, Packets uint64 }
		} `json:"stats64"`
	}
	if err := json.Unmarshal(links, &devices); err != nil {
		return reading{}, fmt.Errorf("what ip reports of the devices: %w", err)
	}
	r := reading{services: map[string]uint64{}}
	for _, d := range devices {
		counted := traffic{d.Counters.RX.Bytes, d.Counters.RX.Packets, d.Counters.TX.Bytes, d.Counters.TX.Packets}
		switch {
		case d.Name == "eth0":
			r.underlay = r.underlay.plus(counted)
		case anyPrefix(d.Name, "flannel", "vxlan.calico", "cilium_vxlan"):
			r.tunnel = r.tunnel.plus(counted)
		case anyPrefix(d.Name, "veth", "cali", "lxc"):
			r.pods = r.pods.plus(counted)
		}
	}
	for line := range strings.Lines(string(rules)) {
		key, count, err := parseRule(line)
		if err != nil {
			return reading{}, err
		}
		if key != "" {
			r.services[key] += count
		}
	}
	return r, nil
}

func anyPrefix(name string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// parseRule parses a rule of kube-proxy for the address of a Service, and how often it matched:
//
//	[3:180] -A KUBE-SERVICES -d 10.96.14.2/32 -p tcp -m comment --comment "…" -m tcp --dport 5201 -j KUBE-SVC-…
//
// The key is empty for all other lines.
func parseRule(line string) (key string, count uint64, err error) {
	counters, rule, ok := strings.Cut(line, "] -A KUBE-SERVICES ")
	if !ok || !strings.Contains(rule, "-j KUBE-SVC-") {
		return "", 0, nil
	}
	words := strings.Fields(rule)
	protocol, address := after(words, "-p"), after(words, "-d")
	prefix, err := netip.ParsePrefix(address)
	if err != nil {
		return "", 0, fmt.Errorf("a rule of kube-proxy's: %q: %w", line, err)
	}
	packets, _, _ := strings.Cut(strings.TrimPrefix(counters, "["), ":")
	if count, err = strconv.ParseUint(packets, 10, 64); err != nil {
		return "", 0, fmt.Errorf("a rule of kube-proxy's: %q: %w", line, err)
	}
	return protocol + " " + prefix.Addr().String(), count, nil
}

// after returns the word after a flag; empty if there is none.
func after(words []string, flag string) string {
	for i, w := range words[:max(0, len(words)-1)] {
		if w == flag {
			return words[i+1]
		}
	}
	return ""
}
