// Package counter tells what the kernel counted in a window of packets that it lost, delayed or repeated.
//
// It stands below load/netload, whose agents read the counters when the window begins and when it ends, and knows
// nothing of workloads. The parsers of the kernel's files and the table of what is taken from them are pure; files and
// netlink are at the edge, in the file for Linux. Package metric describes each counter.
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

// A Look is what the kernel's counters said at one moment: of the agent's own network namespace, of its node's, where
// that is another one and may be entered, and of the machine. Each is by the counters' names, nil if it was not seen.
type Look struct {
	Own, Node, Machine map[string]float64
}

// Counted is how much each counter of [metric.Counters] rose from one look to a later one, by names with their place;
// what did not rise is left out. Shares of a limit are those of the later look.
func (after Look) Counted(before Look) map[string]float64 {
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

// Node is the environment variable that tells an agent the path of its node's network namespace.
const Node = "KNOTMETER_NODE_NETWORK"

// Ancestor in place of a path stands for the namespace of the nearest ancestor that has another one than the agent: of
// the container runtime that started it, where a container sees the processes of its node.
const Ancestor = "ancestor"

// names are what is taken from files of names and numbers, and the counters that it is part of.
var names = map[string]string{
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

// statistics are what drivers call the packets that a provider or a device held back or dropped: those of ENA count
// what exceeds an instance's allowance, those of mlx5 and of Intel's cards what found no room in a receive ring.
var statistics = map[string]string{
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

// errText is what every error about the text of a file of the kernel's is.
var errText = errors.New("not the text of such a file")

// parsePairs reads /proc/net/snmp and /proc/net/netstat: for each protocol a line of names and a line of numbers.
func parsePairs(r io.Reader, into map[string]float64) error {
	var heads []string
	for lines := bufio.NewScanner(r); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		if heads == nil {
			heads = fields
			continue
		}
		if len(fields) != len(heads) || fields[0] != heads[0] {
			return fmt.Errorf("%w: %q does not follow its names", errText, fields[0])
		}
		protocol := strings.TrimSuffix(fields[0], ":")
		for i, value := range fields[1:] {
			if err := take(protocol+"."+heads[i+1], value, 10, into); err != nil {
				return err
			}
		}
		heads = nil
	}
	return nil
}

// parseLines reads /proc/net/snmp6: a name and a number in each line.
func parseLines(r io.Reader, into map[string]float64) error {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) != 2 {
			return fmt.Errorf("%w: %q", errText, lines.Text())
		}
		if err := take(fields[0], fields[1], 10, into); err != nil {
			return err
		}
	}
	return nil
}

// parseConntrack reads /proc/net/stat/nf_conntrack: a line of names, and for each CPU one of hexadecimal numbers.
func parseConntrack(r io.Reader, into map[string]float64) error {
	var heads []string
	for lines := bufio.NewScanner(r); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if heads == nil {
			heads = fields
			continue
		}
		for i, value := range fields[:min(len(fields), len(heads))] {
			if err := take("conntrack."+heads[i], value, 16, into); err != nil {
				return err
			}
		}
	}
	return nil
}

// take adds a value to the counter that its name is part of.
func take(name, value string, base int, into map[string]float64) error {
	counter, wanted := names[name]
	if !wanted {
		return nil
	}
	n, err := strconv.ParseUint(value, base, 64)
	if err != nil {
		return fmt.Errorf("%w: %s is %q", errText, name, value)
	}
	into[counter] += float64(n)
	return nil
}

// parseSoftnet reads /proc/net/softnet_stat, in hexadecimal numbers: each CPU's packets, those that it dropped, and how
// often its budget ran out before its packets did.
func parseSoftnet(r io.Reader, into map[string]float64) error {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 {
			return fmt.Errorf("%w: %q", errText, lines.Text())
		}
		for i, name := range []string{metric.SoftnetDrops, metric.SoftnetSqueezes} {
			n, err := strconv.ParseUint(fields[i+1], 16, 64)
			if err != nil {
				return fmt.Errorf("%w: %q", errText, lines.Text())
			}
			into[name] += float64(n)
		}
	}
	return nil
}

// parseDevices reads /proc/net/dev: what all devices could not receive or send.
func parseDevices(r io.Reader, into map[string]float64) error {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		_, rest, is := strings.Cut(lines.Text(), ":")
		if !is {
			continue // of the table's head
		}
		fields := strings.Fields(rest)
		if len(fields) < 16 {
			return fmt.Errorf("%w: %q", errText, lines.Text())
		}
		for _, i := range []int{2, 3, 10, 11} { // errors and drops of both directions
			n, err := strconv.ParseUint(fields[i], 10, 64)
			if err != nil {
				return fmt.Errorf("%w: %q", errText, lines.Text())
			}
			into[metric.DeviceDrops] += float64(n)
		}
	}
	return nil
}

// parsePressure reads /proc/pressure/cpu: for how long, in µs, something that could run waited for a CPU.
func parsePressure(r io.Reader, into map[string]float64) error {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		rest, is := strings.CutPrefix(lines.Text(), "some ")
		if !is {
			continue
		}
		_, total, _ := strings.Cut(rest, "total=")
		n, err := strconv.ParseUint(total, 10, 64)
		if err != nil {
			return fmt.Errorf("%w: %q", errText, lines.Text())
		}
		into[metric.CPUPressure] += float64(n) / 1e6
	}
	return nil
}
