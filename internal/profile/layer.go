// Package profile measures how much CPU time each layer of the kernel takes, by sampling the call chains of all CPUs
// during a window.
//
// The agents of load/netload use it where they may. A table of prefixes of kernel functions assigns each call chain to
// a layer. Only the file for Linux uses the kernel's interface (perf_event_open).
package profile

// A Layer is a part of the kernel that packets pass through, or user space.
type Layer string

// The layers, from the program to the wire and back.
const (
	User      Layer = "user"      // the agents
	Programs  Layer = "programs"  // other programs, and the kernel while it serves their system calls
	Copy      Layer = "copy"      // between user space and the kernel
	Socket    Layer = "socket"    // system calls and sockets
	TCP       Layer = "tcp"       // congestion control too
	UDP       Layer = "udp"       // the protocol itself, without tunnels over it
	IP        Layer = "ip"        // routing and neighbours too
	Netfilter Layer = "netfilter" // connection tracking too
	EBPF      Layer = "ebpf"      // programs and their maps
	Bridge    Layer = "bridge"    // its netfilter hooks too
	Veth      Layer = "veth"      // pairs of virtual Ethernet devices
	VXLAN     Layer = "vxlan"     // Geneve and GRE too
	IPIP      Layer = "ipip"      // IPv6 in IPv4 (sit) too
	Crypto    Layer = "crypto"    // ciphers, WireGuard and IPsec
	Qdisc     Layer = "qdisc"     // queueing disciplines
	Bounce    Layer = "bounce"    // copies to and from the memory that devices can reach (swiotlb)
	Driver    Layer = "driver"    // network drivers, virtio and DMA
	SoftIRQ   Layer = "softirq"   // the receive path between driver and protocol
	Sched     Layer = "sched"     // scheduling and wake-up
	Other     Layer = "other"     // functions that belong to no other layer
)

// prefixes maps prefixes of function names to layers. The longest prefix that matches decides.
var prefixes = map[string]Layer{
	"_copy_from_iter": Copy, "_copy_to_iter": Copy, "copy_user": Copy, "copyin": Copy, "copyout": Copy,
	"copy_page_from_iter": Copy, "copy_page_to_iter": Copy, "skb_copy_datagram": Copy, "simple_copy_to_iter": Copy,
	"__skb_datagram_iter": Copy, "skb_copy_and_csum": Copy, "rep_movs": Copy, "_copy_from_user": Copy,
	"_copy_to_user": Copy, "csum_and_copy": Copy, "skb_splice_from_iter": Copy,

	"tcp_": TCP, "__tcp_": TCP, "inet_csk": TCP, "reqsk_": TCP, "inet_ehash": TCP, "__inet_lookup": TCP,
	"inet_twsk": TCP, "inet_hash": TCP, "__inet_hash": TCP, "cubictcp_": TCP, "bbr_": TCP, "cookie_": TCP,
	"inet_stream": TCP, "inet_accept": TCP, "__inet_stream": TCP, "inet_reqsk": TCP, "bictcp": TCP,

	"udp_": UDP, "__udp": UDP, "udpv6_": UDP, "udp4_": UDP, "udp6_": UDP, "skb_consume_udp": UDP,

	"ip_": IP, "__ip_": IP, "ip6_": IP, "__ip6_": IP, "ipv6_": IP, "ipv4_": IP, "fib_": IP, "__fib": IP, "fib6_": IP,
	"neigh_": IP, "__neigh": IP, "arp_": IP, "inet_": IP, "icmp": IP, "__icmp": IP, "dst_": IP, "rt_": IP, "rt6_": IP,
	"ndisc_": IP, "raw_": IP, "ipv6": IP, "iptunnel_": VXLAN, "icmpv6": IP,

	"nf_": Netfilter, "__nf_": Netfilter, "nft_": Netfilter, "ipt_": Netfilter, "ipt_do": Netfilter, "xt_": Netfilter,
	"iptable_": Netfilter, "ip6t_": Netfilter, "ip_set": Netfilter, "hash_ip": Netfilter, "hash_net": Netfilter,
	"__nft": Netfilter, "nfct_": Netfilter, "nf6_": Netfilter, "ip_vs": Netfilter, "tcp_mt": Netfilter,
	"udp_mt": Netfilter, "comment_mt": Netfilter, "conntrack_mt": Netfilter, "mark_mt": Netfilter, "set_match": Netfilter,

	"bpf_": EBPF, "__bpf": EBPF, "___bpf": EBPF, "cls_bpf": EBPF, "htab_": EBPF, "__htab": EBPF, "trie_lookup": EBPF,
	"array_map": EBPF, "percpu_array": EBPF, "skb_do_redirect": EBPF, "tcf_": EBPF, "tcx_": EBPF, "xdp_": EBPF,

	"br_": Bridge, "__br_": Bridge, "nf_bridge": Bridge, "br_nf": Bridge, "fdb_": Bridge,

	"veth_": Veth, "__veth": Veth,

	"vxlan_": VXLAN, "__vxlan": VXLAN, "geneve_": VXLAN, "udp_tunnel": VXLAN, "setup_udp_tunnel": VXLAN,
	"gro_cell": VXLAN, "skb_tunnel": VXLAN, "gre_": VXLAN,

	"ipip_": IPIP, "ip_tunnel": IPIP, "tunnel4_": IPIP, "ip4ip6": IPIP, "sit_": IPIP,

	"wg_": Crypto, "chacha": Crypto, "poly1305": Crypto, "blake2": Crypto, "curve25519": Crypto, "crypto_": Crypto,
	"aes": Crypto, "aesni": Crypto, "gcm_": Crypto, "ghash": Crypto, "esp_": Crypto, "xfrm": Crypto, "__xfrm": Crypto,
	"sha": Crypto, "gf128": Crypto, "cryptd": Crypto, "padata": Crypto, "skcipher": Crypto,

	"qdisc_": Qdisc, "__qdisc": Qdisc, "sch_direct": Qdisc, "pfifo": Qdisc, "fq_": Qdisc, "tbf_": Qdisc, "htb_": Qdisc,
	"netem_": Qdisc, "codel_": Qdisc, "mq_": Qdisc, "net_tx_action": Qdisc, "sfq_": Qdisc, "prio_": Qdisc,

	"virtnet": Driver, "virtio": Driver, "virtqueue": Driver, "vring": Driver, "tun_": Driver, "tap_": Driver,
	"loopback_": Driver, "macvlan_": Driver, "ipvlan_": Driver, "ena_": Driver, "mlx5": Driver, "ixgbe": Driver,
	"i40e": Driver, "ice_": Driver, "bnxt": Driver, "gve_": Driver, "hv_": Driver, "netvsc": Driver, "mana_": Driver,
	"vmxnet3": Driver, "e1000": Driver, "igb_": Driver, "swiotlb": Bounce, "dma_": Driver, "vp_": Driver,

	"net_rx_action": SoftIRQ, "napi_": SoftIRQ, "__napi": SoftIRQ, "process_backlog": SoftIRQ, "netif_": SoftIRQ,
	"__netif": SoftIRQ, "enqueue_to_backlog": SoftIRQ, "__do_softirq": SoftIRQ, "handle_softirqs": SoftIRQ,
	"do_softirq": SoftIRQ, "dev_gro": SoftIRQ, "gro_": SoftIRQ, "skb_gro": SoftIRQ, "inet_gro": SoftIRQ,
	"tcp_gro": SoftIRQ, "tcp4_gro": SoftIRQ, "dev_": SoftIRQ, "__dev_": SoftIRQ, "validate_xmit": SoftIRQ,
	"skb_segment": SoftIRQ, "irq_exit": SoftIRQ, "__irq_exit": SoftIRQ, "run_ksoftirqd": SoftIRQ, "eth_": SoftIRQ,
	"skb_defer_free": SoftIRQ, "get_rps": SoftIRQ,

	"schedule": Sched, "__schedule": Sched, "try_to_wake": Sched, "ttwu_": Sched, "enqueue_task": Sched,
	"dequeue_task": Sched, "pick_next": Sched, "pick_task": Sched, "finish_task": Sched, "select_task_rq": Sched,
	"update_curr": Sched, "ep_": Sched, "__ep_": Sched, "do_epoll": Sched, "futex": Sched, "do_futex": Sched,
	"__wake_up": Sched, "default_wake": Sched, "autoremove_wake": Sched, "wake_up": Sched, "woken_wake": Sched,
	"wait_woken": Sched, "hrtimer": Sched, "__hrtimer": Sched, "prepare_to_wait": Sched, "finish_wait": Sched,
	"update_load": Sched, "set_next_entity": Sched, "put_prev": Sched, "check_preempt": Sched, "wakeup_preempt": Sched,
	"resched": Sched, "preempt_schedule": Sched, "raw_spin": Sched, "__cond_resched": Sched, "switch_": Sched,
	"__switch":      Sched,
	"activate_task": Sched, "psi_": Sched, "newidle": Sched, "sched_": Sched, "do_nanosleep": Sched, "update_se": Sched,
	"enqueue_entity": Sched, "dequeue_entit": Sched, "sched_balance": Sched, "load_balance": Sched, "poll_schedule": Sched,

	"sock_": Socket, "__sock": Socket, "sk_": Socket, "__sk_": Socket, "do_syscall": Socket, "__x64_sys": Socket,
	"__arm64_sys": Socket, "__sys_": Socket, "entry_SYSCALL": Socket, "syscall_": Socket, "x64_sys_call": Socket,
	"el0_svc": Socket, "invoke_syscall": Socket, "ksys_": Socket, "vfs_": Socket, "security_socket": Socket,
	"lock_sock": Socket, "release_sock": Socket, "__release_sock": Socket, "inet_sendmsg": Socket,
	"inet_recvmsg": Socket, "inet6_sendmsg": Socket, "inet6_recvmsg": Socket, "____sys": Socket, "___sys": Socket,
	"new_sync": Socket, "apparmor_socket": Socket, "import_": Socket, "fdget": Socket, "__fget": Socket,
	"exit_to_user": Socket,
}

// softIRQs are the functions that run soft interrupts, in the context of whatever program the CPU was running.
var softIRQs = map[string]bool{"handle_softirqs": true, "__do_softirq": true}

// layerOf returns the layer of a function, or "" if the function serves many layers, such as memory allocation.
func layerOf(function string) Layer {
	for n := len(function); n > 0; n-- {
		if layer, known := prefixes[function[:n]]; known {
			return layer
		}
	}
	return ""
}
