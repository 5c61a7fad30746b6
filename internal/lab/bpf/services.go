package bpf

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// protocols are the protocols of Services by their numbers in the IP header: TCP and UDP.
var protocols = []byte{6, 17}

// A Service is a virtual address and the only endpoint behind it.
type Service struct {
	Addr     netip.AddrPort // address that clients dial
	Endpoint netip.AddrPort // address that they reach
}

// Layout of an address in a map: 16 bytes of IPv6 and the port, both in network order, then the protocol or 0. IPv4 is
// mapped into IPv6, so that an IPv6 socket that connects to a mapped address is translated too.
const (
	entryPort     = 16
	entryProtocol = 20
	entryLen      = 24
)

// entry returns an address as the maps hold it; protocol is 0 if the map ignores it.
func entry(a netip.AddrPort, protocol byte) [entryLen]byte {
	var e [entryLen]byte
	ip := a.Addr().As16()
	copy(e[:], ip[:])
	binary.BigEndian.PutUint16(e[entryPort:], a.Port())
	e[entryProtocol] = protocol
	return e
}

// Offsets on the programs' stacks: of the address to look up, and of the key of the reverse map, which is the socket's
// cookie followed by the endpoint to which the socket is connected.
const (
	stackEntry   = -entryLen
	stackReverse = stackEntry - 8 - entryLen
)

// A hook is a place to which a program is attached, and what the program does there.
type hook struct {
	name   string
	attach ebpf.AttachType
	ipv6   bool
	// reverse: translate the endpoint into the Service, for hooks that report the peer to the caller; false: translate
	// the Service into its endpoint.
	reverse bool
}

// hooks lists the hooks of connect, of datagrams that are sent without it, and of calls that return the peer's address.
// Cilium without kube-proxy uses the same hooks.
var hooks = []hook{
	{"connect4", ebpf.AttachCGroupInet4Connect, false, false},
	{"connect6", ebpf.AttachCGroupInet6Connect, true, false},
	{"sendmsg4", ebpf.AttachCGroupUDP4Sendmsg, false, false},
	{"sendmsg6", ebpf.AttachCGroupUDP6Sendmsg, true, false},
	{"recvmsg4", ebpf.AttachCGroupUDP4Recvmsg, false, true},
	{"recvmsg6", ebpf.AttachCGroupUDP6Recvmsg, true, true},
	{"getpeername4", ebpf.AttachCgroupInet4GetPeername, false, true},
	{"getpeername6", ebpf.AttachCgroupInet6GetPeername, true, true},
}

// program returns the hook's program.
func (h hook) program() asm.Instructions {
	insns := append(asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}, h.loadAddress()...)
	if h.reverse {
		insns = slices.Concat(insns, reverseKey(asm.RFP, stackEntry), lookup(reverseMap, stackReverse))
	} else {
		insns = slices.Concat(insns, lookup(servicesMap, stackEntry),
			asm.Instructions{asm.Mov.Reg(asm.R7, asm.R0)}, remember(), asm.Instructions{asm.Mov.Reg(asm.R0, asm.R7)})
	}
	return slices.Concat(insns, h.storeAddress(), label("allow", asm.Mov.Imm(asm.R0, 1), asm.Return()))
}

// loadAddress returns instructions that copy the address of the context in R6 into the entry on the stack.
func (h hook) loadAddress() asm.Instructions {
	var insns asm.Instructions
	if h.ipv6 {
		for i := range int16(4) {
			insns = append(insns,
				asm.LoadMem(asm.R1, asm.R6, addrIP6+4*i, asm.Word),
				asm.StoreMem(asm.RFP, stackEntry+4*i, asm.R1, asm.Word))
		}
	} else {
		insns = append(insns,
			asm.StoreImm(asm.RFP, stackEntry, 0, asm.Word),
			asm.StoreImm(asm.RFP, stackEntry+4, 0, asm.Word),
			asm.StoreImm(asm.RFP, stackEntry+8, storeImm32([4]byte{0, 0, 0xff, 0xff}), asm.Word),
			asm.LoadMem(asm.R1, asm.R6, addrIP4, asm.Word),
			asm.StoreMem(asm.RFP, stackEntry+12, asm.R1, asm.Word))
	}
	insns = append(insns,
		asm.LoadMem(asm.R1, asm.R6, addrPort, asm.Word),
		asm.StoreMem(asm.RFP, stackEntry+entryPort, asm.R1, asm.Word))
	if h.reverse {
		return append(insns, asm.StoreImm(asm.RFP, stackEntry+entryProtocol, 0, asm.Word))
	}
	return append(insns,
		asm.LoadMem(asm.R1, asm.R6, addrProtocol, asm.Word),
		asm.StoreMem(asm.RFP, stackEntry+entryProtocol, asm.R1, asm.Word))
}

// storeAddress returns instructions that copy the entry that R0 points to into the context in R6.
func (h hook) storeAddress() asm.Instructions {
	var insns asm.Instructions
	if h.ipv6 {
		for i := range int16(4) {
			insns = append(insns,
				asm.LoadMem(asm.R1, asm.R0, 4*i, asm.Word),
				asm.StoreMem(asm.R6, addrIP6+4*i, asm.R1, asm.Word))
		}
	} else {
		insns = append(insns,
			asm.LoadMem(asm.R1, asm.R0, 12, asm.Word),
			asm.StoreMem(asm.R6, addrIP4, asm.R1, asm.Word))
	}
	return append(insns,
		asm.LoadMem(asm.R1, asm.R0, entryPort, asm.Word),
		asm.StoreMem(asm.R6, addrPort, asm.R1, asm.Word))
}

// lookup returns instructions that leave in R0 a pointer to the map's value for the key at that offset of the stack.
// Without such a value they allow the call unchanged.
func lookup(name string, key int32) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, 0).WithReference(name),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, key),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "allow"),
	}
}

// reverseKey returns instructions that build the key of the reverse map from the socket of the context in R6 and the
// entry at an offset from the register at.
func reverseKey(at asm.Register, offset int16) asm.Instructions {
	insns := asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.FnGetSocketCookie.Call(),
		asm.StoreMem(asm.RFP, stackReverse, asm.R0, asm.DWord),
	}
	for i := int16(0); i < entryLen; i += 8 {
		insns = append(insns,
			asm.LoadMem(asm.R1, at, offset+i, asm.DWord),
			asm.StoreMem(asm.RFP, stackReverse+8+i, asm.R1, asm.DWord))
	}
	return insns
}

// remember returns instructions that record in the reverse map that the socket dialed the Service on the stack to reach
// the endpoint that R7 points to.
func remember() asm.Instructions {
	return append(reverseKey(asm.R7, 0),
		asm.LoadMapPtr(asm.R1, 0).WithReference(reverseMap),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, stackReverse),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, stackEntry),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnMapUpdateElem.Call())
}
