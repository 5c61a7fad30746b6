package labtarget

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// options are the options of a lab target.
type options struct {
	lab.Topology
	oneCPU bool
	dir    string // for storage cases; empty: none
}

// settings is the table of the options: each with its help, its field and its parser.
var settings = []targets.Setting[options]{
	targets.NewSetting(targets.Option{
		Name: "mtu", Example: "1500", Help: "MTU of the underlay in bytes; pods get what the datapath leaves",
	}, func(o *options) *int { return &o.MTU }, number(lab.MinMTU, lab.MaxMTU)),
	targets.NewSetting(targets.Option{
		Name: "rate", Example: "1Gbit/s", Help: "rate of each node's uplink (default: unlimited)",
	}, func(o *options) *int64 { return &o.Rate }, rate),
	targets.NewSetting(targets.Option{
		Name: "services", Example: "nftables",
		Help: "how a Service's address becomes its endpoint's: nftables on each node, as kube-proxy does, " +
			"or ebpf at connect, as Cilium without kube-proxy does",
	}, func(o *options) *string { return &o.Services }, targets.AnyText),
	targets.NewSetting(targets.Option{
		Name: "nodes", Example: "2", Help: "number of nodes, from 2 to 16; the client's node changes from block to block",
	}, func(o *options) *int { return &o.Nodes }, number(lab.MinNodes, lab.MaxNodes)),
	targets.NewSetting(targets.Option{
		Name: "delay", Example: "5ms",
		Help: "delay that the underlay adds to each round trip; a process carries its packets then",
	}, func(o *options) **time.Duration { return &o.Delay }, delay),
	targets.NewSetting(targets.Option{
		Name: "loss", Example: "1%", Help: "share of the IP packets from the underlay that is dropped, at random",
	}, func(o *options) *float64 { return &o.Loss }, loss),
	targets.NewSetting(targets.Option{
		Name: "rules", Example: "1000", Help: "rules of the packet filter that each node tries in vain on what it forwards",
	}, func(o *options) *int { return &o.Rules }, number(1, lab.MaxRules)),
	targets.NewSetting(targets.Option{
		Name: "pod-mtu", Example: "1400", Help: "MTU of the pods in bytes, if less than what the datapath leaves",
	}, func(o *options) *int { return &o.Pods.MTU }, number(lab.MinPodMTU, lab.MaxMTU)),
	targets.NewSetting(targets.Option{
		Name: "offloads", Example: "off", Help: "off: the pods' devices leave segments and checksums to the CPU",
	}, func(o *options) *bool { return &o.Pods.OffloadsOff }, targets.Choice("on", "off")),
	targets.NewSetting(targets.Option{
		Name: "congestion", Example: "reno", Help: "TCP's congestion control in the pods; the kernel's own by default",
	}, func(o *options) *string { return &o.Pods.Congestion }, targets.AnyText),
	targets.NewSetting(targets.Option{
		Name: "buffer", Example: "64KiB", Help: "most that a TCP socket of a pod buffers for each direction",
	}, func(o *options) *int64 { return &o.Pods.Buffer }, buffer),
	targets.NewSetting(targets.Option{
		Name: "backlog", Example: "16", Help: "most connections that wait to be accepted in a pod",
	}, func(o *options) *int { return &o.Pods.Backlog }, number(1, lab.MaxBacklog)),
	targets.NewSetting(targets.Option{
		Name: "cpus", Example: "one", Help: "CPUs of the ends: one for both, or halves of this machine's by default",
	}, func(o *options) *bool { return &o.oneCPU }, targets.Choice("halves", "one")),
	targets.NewSetting(targets.Option{
		Name: "ip", Example: "4", Help: "IP version of the traffic: 4 or 6",
	}, func(o *options) *bool { return &o.IPv6 }, targets.Choice("4", "6")),
	targets.NewSetting(targets.Option{
		Name: "dir", Example: "/var/tmp",
		Help: "directory of this machine that storage cases measure; a lab has no disk of its own",
	}, func(o *options) *string { return &o.dir }, targets.AnyText),
}

// Options lists the options of a lab target.
func Options() []targets.Option { return targets.Options(settings) }

// parse parses the options of a target. Every error Is result.ErrSpec and names the option and its range.
func parse(spec result.Spec) (options, error) {
	o := options{Topology: lab.Default()}
	err := targets.Read(spec, settings, &o)
	return o, err
}

// number returns a parser of whole numbers from least to most.
func number(least, most int) func(string) (int, error) {
	return func(value string) (int, error) {
		n, err := strconv.Atoi(value)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("it is a whole number from %d to %d", least, most)
		}
		return n, nil
	}
}

// rate parses a rate in bit/s, such as "1Gbit/s", or "1G" for short.
func rate(value string) (int64, error) {
	long := value
	if !strings.Contains(value, "/") && !strings.HasSuffix(value, "bps") {
		long = strings.TrimSuffix(value, "bit") + "bit/s"
	}
	v, err := unit.ParseAs(long, unit.BitPerSecond)
	if err != nil || v < lab.MinRate || v > lab.MaxRate {
		return 0, fmt.Errorf("it is a rate from %s to %s",
			unit.Format(lab.MinRate, unit.BitPerSecond), unit.Format(lab.MaxRate, unit.BitPerSecond))
	}
	return int64(v), nil
}

func buffer(value string) (int64, error) {
	v, err := unit.ParseAs(value, unit.Byte)
	if err != nil || !(v >= lab.MinBuffer && v <= lab.MaxBuffer) {
		return 0, fmt.Errorf("it is a size from %s to %s",
			unit.Format(lab.MinBuffer, unit.Byte), unit.Format(lab.MaxBuffer, unit.Byte))
	}
	return int64(v), nil
}

func delay(value string) (*time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 || d > lab.MaxDelay {
		return nil, fmt.Errorf("it is a time from 0s to %v", lab.MaxDelay)
	}
	return &d, nil
}

func loss(value string) (float64, error) {
	share, err := unit.ParseAs(value, unit.Ratio)
	if err != nil || !(share >= 0 && share <= lab.MaxLoss) {
		return 0, fmt.Errorf("it is a fraction from 0 to %g, such as 0.01 or 1%%", lab.MaxLoss)
	}
	return share, nil
}
