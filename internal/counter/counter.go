// Package counter reads what the kernel counts of lost, delayed and retransmitted packets, and returns the increase
// within a window.
//
// The agents of load/netload read the counters when the window begins and when it ends. The parsers and the tables of
// names are pure; only the files for Linux open files and netlink sockets. Package metric describes each counter.
package counter

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/metric"
)

// A Snapshot holds the kernel's counters at one moment, by their names in [metric.Counters]. Own has those of the
// agent's network namespace, Machine those that exist once per machine. Node has those of the node's network namespace;
// it is nil if the environment variable [Node] names none.
type Snapshot struct {
	Own, Node, Machine map[string]float64
}

// Since returns by how much each counter rose since an earlier snapshot. Names of the node's counters begin with
// [metric.OfNode]. Counters that did not rise are left out; shares of a limit are those of the later snapshot.
func (after Snapshot) Since(before Snapshot) map[string]float64 {
	counted := map[string]float64{}
	add := func(place string, before, after map[string]float64) {
		for name, now := range after {
			if !metric.IsShare(name) {
				now -= before[name]
			}
			if now > 0 {
				counted[place+name] = now
			}
		}
	}
	add("", before.Own, after.Own)
	add("", before.Machine, after.Machine)
	add(metric.OfNode, before.Node, after.Node)
	return counted
}

// Node is the environment variable from which agents read the path of their node's network namespace, or [Ancestor].
const Node = "KNOTMETER_NODE_NETWORK"

// Ancestor as the value of [Node] selects the network namespace of the nearest ancestor process whose namespace differs
// from the agent's: that of the container runtime, if the container sees the processes of its node.
const Ancestor = "ancestor"

// fileCounters maps names in the kernel's files to the counters that their values are added to.
var fileCounters = map[string]string{
	"Tcp.RetransSegs":         metric.TCPRetransmitted,
	"Tcp.InCsumErrors":        metric.ChecksumErrors,
	"Udp.InCsumErrors":        metric.ChecksumErrors,
	"Udp6InCsumErrors":        metric.ChecksumErrors,
	"Udp.RcvbufErrors":        metric.ReceiveBufferErrors,
	"Udp6RcvbufErrors":        metric.ReceiveBufferErrors,
	"Udp.SndbufErrors":        metric.SendBufferErrors,
	"Udp6SndbufErrors":        metric.SendBufferErrors,
	"Ip.FragCreates":          metric.Fragments,
	"Ip6FragCreates":          metric.Fragments,
	"Ip.FragFails":            metric.FragmentationFailed,
	"Ip6FragFails":            metric.FragmentationFailed,
	"Icmp.InDestUnreachs":     metric.Unreachable,
	"Icmp6InDestUnreachs":     metric.Unreachable,
	"Icmp6InPktTooBigs":       metric.Unreachable,
	"TcpExt.ListenOverflows":  metric.ListenOverflows,
	"TcpExt.TCPSynRetrans":    metric.SYNRetransmitted,
	"TcpExt.TCPTimeouts":      metric.TCPTimeouts,
	"TcpExt.TCPRcvQDrop":      metric.TCPReceiveDrops,
	"TcpExt.TCPBacklogDrop":   metric.TCPReceiveDrops,
	"TcpExt.RcvPruned":        metric.TCPReceiveDrops,
	"TcpExt.TCPSACKReorder":   metric.TCPReordered,
	"conntrack.insert_failed": metric.ConntrackInsertFailed,
	"conntrack.drop":          metric.ConntrackDrops,
	"conntrack.early_drop":    metric.ConntrackDrops,
}

// driverCounters maps statistics of drivers to the counters that they are added to. The statistics of ENA count packets
// that exceeded an instance's allowance; those of mlx5 and of Intel's drivers count packets that found no room in a
// receive ring.
var driverCounters = map[string]string{
	"bw_in_allowance_exceeded":     metric.AllowanceExceeded,
	"bw_out_allowance_exceeded":    metric.AllowanceExceeded,
	"pps_allowance_exceeded":       metric.AllowanceExceeded,
	"conntrack_allowance_exceeded": metric.AllowanceExceeded,
	"linklocal_allowance_exceeded": metric.AllowanceExceeded,
	"rx_out_of_buffer":             metric.RingDrops,
	"rx_discards_phy":              metric.RingDrops,
	"rx_no_buffer_count":           metric.RingDrops,
	"rx_missed_errors":             metric.RingDrops,
}

// errFormat is wrapped by every error about the format of a file.
var errFormat = errors.New("not the text of such a file")

// parsePairs parses /proc/net/snmp and /proc/net/netstat: for each protocol a line of names and a line of values.
func parsePairs(r io.Reader, into map[string]float64) error {
	var heads []string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		if heads == nil {
			heads = fields
			continue
		}
		if len(fields) != len(heads) || fields[0] != heads[0] {
			return fmt.Errorf("%w: %q does not follow its names", errFormat, fields[0])
		}
		protocol := strings.TrimSuffix(fields[0], ":")
		for i, value := range fields[1:] {
			if err := add(protocol+"."+heads[i+1], value, 10, into); err != nil {
				return err
			}
		}
		heads = nil
	}
	return lines.Err()
}

// parseLines parses /proc/net/snmp6: a name and a value in each line.
func parseLines(r io.Reader, into map[string]float64) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 2 {
			return fmt.Errorf("%w: %q", errFormat, lines.Text())
		}
		if err := add(fields[0], fields[1], 10, into); err != nil {
			return err
		}
	}
	return lines.Err()
}

// parseConntrack parses /proc/net/stat/nf_conntrack: a line of names, and for each CPU a line of hexadecimal values.
func parseConntrack(r io.Reader, into map[string]float64) error {
	var heads []string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if heads == nil {
			heads = fields
			continue
		}
		for i, value := range fields[:min(len(fields), len(heads))] {
			if err := add("conntrack."+heads[i], value, 16, into); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

// add adds a value to the counter that its name maps to. Other names are ignored.
func add(name, value string, base int, into map[string]float64) error {
	counter, wanted := fileCounters[name]
	if !wanted {
		return nil
	}
	n, err := strconv.ParseUint(value, base, 64)
	if err != nil {
		return fmt.Errorf("%w: %s is %q", errFormat, name, value)
	}
	into[counter] += float64(n)
	return nil
}

// parseSoftnet parses /proc/net/softnet_stat: for each CPU hexadecimal counts of packets, of drops, and of polls that
// ended because the budget was spent.
func parseSoftnet(r io.Reader, into map[string]float64) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 {
			return fmt.Errorf("%w: %q", errFormat, lines.Text())
		}
		for i, name := range []string{metric.SoftnetDrops, metric.SoftnetSqueezes} {
			n, err := strconv.ParseUint(fields[i+1], 16, 64)
			if err != nil {
				return fmt.Errorf("%w: %q", errFormat, lines.Text())
			}
			into[name] += float64(n)
		}
	}
	return lines.Err()
}

// parseDevices parses /proc/net/dev: the receive and transmit errors and drops of all devices.
func parseDevices(r io.Reader, into map[string]float64) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		_, rest, found := strings.Cut(lines.Text(), ":")
		if !found {
			continue // a heading
		}
		fields := strings.Fields(rest)
		if len(fields) < 16 {
			return fmt.Errorf("%w: %q", errFormat, lines.Text())
		}
		for _, i := range []int{2, 3, 10, 11} { // receive errors and drops, transmit errors and drops
			n, err := strconv.ParseUint(fields[i], 10, 64)
			if err != nil {
				return fmt.Errorf("%w: %q", errFormat, lines.Text())
			}
			into[metric.DeviceDrops] += float64(n)
		}
	}
	return lines.Err()
}

// parsePressure parses /proc/pressure/cpu: the time, in µs, for which some runnable task waited for a CPU. The counter
// is in seconds.
func parsePressure(r io.Reader, into map[string]float64) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		rest, found := strings.CutPrefix(lines.Text(), "some ")
		if !found {
			continue
		}
		_, total, _ := strings.Cut(rest, "total=")
		n, err := strconv.ParseUint(total, 10, 64)
		if err != nil {
			return fmt.Errorf("%w: %q", errFormat, lines.Text())
		}
		into[metric.CPUPressure] += float64(n) / 1e6
	}
	return lines.Err()
}
