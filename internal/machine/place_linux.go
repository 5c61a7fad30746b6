package machine

import (
	"os"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
)

// sysctls are the kernel settings that affect measurements. Comments say what they affect. Most are per network
// namespace; a pod does not see those that exist only in the machine's own namespace.
var sysctls = []string{
	// Of the network namespace.
	"net.core.rmem_default", "net.core.wmem_default", // buffers of UDP sockets that set no size: loss
	"net.core.rmem_max", "net.core.wmem_max", // largest buffers that a socket may set
	"net.core.somaxconn", "net.ipv4.tcp_max_syn_backlog", // connections that may wait to be accepted: tcp-crr
	"net.ipv4.ip_local_port_range", // how soon ports run out: tcp-crr
	"net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_fin_timeout",
	"net.ipv4.tcp_congestion_control", "net.ipv4.tcp_ecn", // how a stream's rate is controlled
	"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", // limits of the window, which is rate × round trip
	"net.ipv4.tcp_moderate_rcvbuf", "net.ipv4.tcp_window_scaling",
	"net.ipv4.tcp_mtu_probing",                         // hides a wrong MTU
	"net.ipv4.tcp_notsent_lowat",                       // latency while a stream sends
	"net.ipv4.tcp_sack",                                // the rate when packets are lost
	"net.ipv4.tcp_slow_start_after_idle",               // requests with pauses between them
	"net.ipv4.tcp_timestamps",                          // 12 bytes of each segment, and reuse of ports
	"net.netfilter.nf_conntrack_max",                   // connections through a Service: tcp-crr
	"net.netfilter.nf_conntrack_tcp_timeout_time_wait", // how long each is counted
	// Of the machine.
	"net.core.netdev_budget", "net.core.netdev_max_backlog", // packets per soft interrupt, and queued packets
	"net.core.default_qdisc",                   // of devices that are made later
	"net.core.busy_poll", "net.core.busy_read", // polling instead of interrupts: latency for CPU time
	"net.core.rps_sock_flow_entries",     // steering of packets to the CPU of their reader
	"net.bridge.bridge-nf-call-iptables", // whether packets of bridged pods pass the machine's filter
}

// PlaceFacts returns the facts of the machine, and the settings of the network namespace that the process is in.
func PlaceFacts() []result.Fact {
	list := append(Facts(),
		result.Fact{Name: "boot-id", Value: readText("/proc/sys/kernel/random/boot_id")},
	)
	for _, name := range sysctls {
		list = append(list, result.Fact{Name: "sysctl." + strings.ReplaceAll(name, "_", "-"),
			Value: readText("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))})
	}
	return list
}

// readText returns the content of a small file with single spaces between words, or result.Unknown.
func readText(path string) string {
	b, err := os.ReadFile(path)
	if words := strings.Fields(string(b)); err == nil && len(words) > 0 {
		return strings.Join(words, " ")
	}
	return result.Unknown
}
