//go:build linux

package labtarget

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// halves splits the CPUs that this process may use: the first half for clients, the second for servers, the same for
// every lab on this machine. A single CPU is for both.
func halves() (client, server []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, nil, fmt.Errorf("read the CPUs that this process may use: %w", err)
	}
	var allowed []int
	for i := range len(set) * strconv.IntSize {
		if set.IsSet(i) {
			allowed = append(allowed, i)
		}
	}
	if len(allowed) < 2 {
		return allowed, allowed, nil
	}
	return allowed[:len(allowed)/2], allowed[len(allowed)/2:], nil
}

// Facts are those of the target's text, of this machine, and of a site that is opened for them.
func (l *labTarget) Facts(ctx context.Context) ([]result.Fact, error) {
	t := l.topology
	family, limit := "4", "unlimited"
	if t.IPv6 {
		family = "6"
	}
	if t.Rate > 0 {
		limit = unit.Format(float64(t.Rate), unit.BitPerSecond)
	}
	privilege := "root"
	if l.config.UserNamespace || os.Geteuid() != 0 {
		privilege = "user namespace"
	}
	facts := []result.Fact{
		{Name: "kind", Value: "lab"},
		{Name: "datapath", Value: l.datapath.Name()},
		{Name: "as-used-by", Value: l.datapath.About()},
		{Name: "services", Value: t.Services},
		{Name: "nodes", Value: strconv.Itoa(t.Nodes)},
		{Name: "underlay-mtu", Value: strconv.Itoa(t.MTU)},
		{Name: "pod-mtu", Value: strconv.Itoa(l.podMTU)},
		{Name: "underlay-rate", Value: limit},
		{Name: "ip", Value: family},
		{Name: "privilege", Value: privilege},
	}
	facts = append(facts, machine()...)
	return append(facts, l.siteFacts(ctx)...), nil
}

// siteFacts are what only a site can tell; without one, that is unknown.
func (l *labTarget) siteFacts(ctx context.Context) []result.Fact {
	own := []string{"client", "server", "dial", "mtu"}
	paths := target.Paths()
	slices.Reverse(paths)
	i := slices.IndexFunc(paths, func(p target.Path) bool { return p.Other() && l.Supports(target.Placement{Path: p}) == nil })
	if i >= 0 {
		if site, err := l.Open(ctx, target.Placement{Path: paths[i]}); err == nil {
			_ = site.Close(ctx)
			return slices.DeleteFunc(site.Facts, func(f result.Fact) bool { return slices.Contains(own, f.Name) })
		}
	}
	return []result.Fact{
		{Name: "congestion-control", Value: result.Unknown}, {Name: "client-offloads", Value: result.Unknown},
		{Name: "server-offloads", Value: result.Unknown}, {Name: "underlay-header", Value: result.Unknown},
		{Name: "path-mtu", Value: result.Unknown},
	}
}

// machine is what is true of this machine, whatever the target.
func machine() []result.Fact {
	var name unix.Utsname
	kernel := result.Unknown
	if unix.Uname(&name) == nil {
		kernel = unix.ByteSliceToString(name.Release[:])
	}
	memory := result.Unknown
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		memory = unit.Format(float64(info.Totalram)*float64(info.Unit), unit.Byte)
	}
	cpuinfo, _ := os.ReadFile("/proc/cpuinfo")
	return []result.Fact{
		{Name: "kernel", Value: kernel},
		{Name: "architecture", Value: runtime.GOARCH},
		{Name: "cpu-model", Value: field(cpuinfo, "model name")},
		{Name: "cpus", Value: strconv.Itoa(runtime.NumCPU())},
		{Name: "memory", Value: memory},
		{Name: "virtualisation", Value: virtualisation(cpuinfo)},
	}
}

// field is the value of the first line of /proc/cpuinfo with that name.
func field(cpuinfo []byte, name string) string {
	lines := bufio.NewScanner(bytes.NewReader(cpuinfo))
	for lines.Scan() {
		key, value, ok := strings.Cut(lines.Text(), ":")
		if ok && strings.TrimSpace(key) == name && strings.TrimSpace(value) != "" {
			return strings.TrimSpace(value)
		}
	}
	return result.Unknown
}

// virtualisation is a hint: x86 CPUs say whether there is a hypervisor, firmware often says which.
func virtualisation(cpuinfo []byte) string {
	var words []string
	for _, name := range []string{"/sys/hypervisor/type", "/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name"} {
		text, err := os.ReadFile(name)
		if word := strings.TrimSpace(string(text)); err == nil && word != "" {
			words = append(words, word)
		}
	}
	flags := strings.Fields(field(cpuinfo, "flags"))
	switch {
	case slices.Contains(flags, "hypervisor"):
		return strings.TrimSpace("virtual machine " + strings.Join(words, " "))
	case len(flags) > 1:
		return "none seen"
	case len(words) > 0:
		return strings.Join(words, " ")
	}
	return result.Unknown
}
