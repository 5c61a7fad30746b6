// Package bpf is the lab's one door to eBPF: the programs that encapsulate IP in IP where the kernel
// has no tunnel device for it, and those that translate a Service's address when a socket connects.
//
// The programs are pure functions that return instructions, written here one by one, so that neither
// a compiler nor an object file is needed at run time. Attached they are links, which live as long
// as the process that holds them: nothing is pinned, nothing survives.
package bpf

import (
	"encoding/binary"

	"github.com/cilium/ebpf/asm"
)

// The fields of struct __sk_buff that the programs read (linux/bpf.h).
const (
	skbLen      = 0
	skbProtocol = 16
	skbIfindex  = 40
)

// The fields of struct bpf_sock_addr that the programs read and write (linux/bpf.h).
const (
	addrIP4      = 4
	addrIP6      = 8
	addrPort     = 24
	addrProtocol = 36
)

// Values that the programs use.
const (
	etherLen = 14 // an Ethernet header
	ipLen    = 20 // an IPv4 header without options

	protocolIPIP = 4
	encapTTL     = 64

	// tcxNext leaves the packet to the next program, then to the stack; tcxDrop drops it.
	tcxNext = -1
	tcxDrop = 2

	// Where bpf_skb_adjust_room makes or takes its room, and how.
	roomMAC       = 1      // BPF_ADJ_ROOM_MAC: after the link-layer header
	roomFixedGSO  = 1 << 0 // BPF_F_ADJ_ROOM_FIXED_GSO
	roomEncapIPv4 = 1 << 1 // BPF_F_ADJ_ROOM_ENCAP_L3_IPV4
	roomDecapIPv4 = 1 << 7 // BPF_F_ADJ_ROOM_DECAP_L3_IPV4
)

// word is four bytes in network order as the immediate that stores them.
func word(b [4]byte) int64 { return int64(int32(binary.NativeEndian.Uint32(b[:]))) }

// half is a number as the immediate that stores it in network order.
func half(v uint16) int64 {
	return int64(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v)))
}

// host is four bytes in network order as a number to compare with.
func host(b [4]byte) int32 { return int32(binary.BigEndian.Uint32(b[:])) }

// label gives the first of some instructions a name to jump to.
func label(name string, insns ...asm.Instruction) asm.Instructions {
	insns[0] = insns[0].WithSymbol(name)
	return insns
}
