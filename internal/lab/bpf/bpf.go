// Package bpf has the lab's eBPF programs: those that encapsulate IP in IP if the kernel has no tunnel device for it,
// and those that translate a Service's address when a socket connects. No other package uses eBPF.
//
// Pure functions return the programs' instructions, so that neither a compiler nor an object file is needed at run
// time. Attached programs are links, which exist as long as the process that holds them: nothing is pinned, and nothing
// remains.
package bpf

import (
	"encoding/binary"

	"github.com/cilium/ebpf/asm"
)

// Offsets of fields of struct __sk_buff (linux/bpf.h).
const (
	skbLen      = 0
	skbProtocol = 16
	skbIfindex  = 40
)

// Offsets of fields of struct bpf_sock_addr (linux/bpf.h).
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

	// tcxNext passes the packet to the next program, then to the stack; tcxDrop drops it.
	tcxNext = -1
	tcxDrop = 2

	// roomMAC is a mode of bpf_skb_adjust_room, the others are its flags.
	roomMAC       = 1      // BPF_ADJ_ROOM_MAC: after the link-layer header
	roomFixedGSO  = 1 << 0 // BPF_F_ADJ_ROOM_FIXED_GSO
	roomEncapIPv4 = 1 << 1 // BPF_F_ADJ_ROOM_ENCAP_L3_IPV4
	roomDecapIPv4 = 1 << 7 // BPF_F_ADJ_ROOM_DECAP_L3_IPV4
)

// storeImm32 returns four bytes in network order as the immediate operand that stores them.
func storeImm32(b [4]byte) int64 { return int64(int32(binary.NativeEndian.Uint32(b[:]))) }

// storeImm16 returns a number as the immediate operand that stores it in network order.
func storeImm16(v uint16) int64 {
	return int64(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v)))
}

// compareImm returns four bytes in network order as a number to compare with a register in host order.
func compareImm(b [4]byte) int32 { return int32(binary.BigEndian.Uint32(b[:])) }

// label gives the first of some instructions a label to jump to.
func label(name string, insns ...asm.Instruction) asm.Instructions {
	insns[0] = insns[0].WithSymbol(name)
	return insns
}
