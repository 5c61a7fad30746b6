package bpf

import (
	"fmt"
	"net/netip"
	"strconv"

	"github.com/cilium/ebpf/asm"
)

// Names of the maps that the instructions refer to.
const (
	countersMap = "counters"
	servicesMap = "services"
	reverseMap  = "reverse"
)

// A Tunnel is one node's side of IP-in-IP (RFC 2003), IPv4 in IPv4 only.
type Tunnel struct {
	Node  netip.Addr   // the node's address on the underlay: the outer source
	Pods  netip.Prefix // the node's own pods
	Peers []Peer       // the other nodes
	// Shaped reports that the uplink has a queue that limits bytes. The kernel sets a packet's size for the queue before
	// programs run, so packets are then redirected to the uplink again, to be counted with their outer headers.
	Shaped bool
}

// A Peer is another node of a tunnel.
type Peer struct {
	Node netip.Addr   // the outer destination
	Pods netip.Prefix // destinations that are sent to it
}

// Counters count what a tunnel has carried. Bytes are those of the inner packets as the stack sees them: before
// segmentation and without the link-layer header.
type Counters struct {
	EncapPackets, EncapBytes uint64
	DecapPackets, DecapBytes uint64
	Errors                   uint64 // packets dropped because they could not be encapsulated or decapsulated
}

// Offsets of the fields of Counters to which the programs add.
const (
	countEncap  = 0
	countDecap  = 16
	countErrors = 32
)

// validate returns an error that names the first address that the programs do not support.
func (t Tunnel) validate() error {
	if len(t.Peers) == 0 {
		return fmt.Errorf("an IP-in-IP tunnel of %v without a peer", t.Node)
	}
	for _, p := range append([]Peer{{t.Node, t.Pods}}, t.Peers...) {
		if !p.Node.Is4() || !p.Pods.Addr().Is4() { // zero values are not IPv4 either
			return fmt.Errorf("IP-in-IP carries IPv4 in IPv4 only, not node %v with pods %v", p.Node, p.Pods)
		}
	}
	return nil
}

// header is the offset of the IPv4 header on the programs' stacks.
const header = -ipLen

// encap returns the program for the uplink's egress. It adds an outer header to packets to another node's pods, and to
// packets from the node's pods to another node; it passes all others unchanged.
//
// BPF_F_ADJ_ROOM_FIXED_GSO keeps the segment size that TCP chose for large sends, since the pods' MTU leaves room for
// the outer header.
func (t Tunnel) encap() asm.Instructions {
	insns := loadIPv4()
	insns = append(insns,
		asm.LoadMem(asm.R7, asm.RFP, header+16, asm.Word), // inner destination
		asm.HostTo(asm.BE, asm.R7, asm.Word),
		asm.LoadMem(asm.R8, asm.RFP, header+12, asm.Word), // inner source
		asm.HostTo(asm.BE, asm.R8, asm.Word),
	)
	for i, p := range t.Peers {
		insns = append(insns, t.choosePeer(i, p)...)
	}
	insns = append(insns, asm.Ja.Label("pass"))
	for i, p := range t.Peers {
		insns = append(insns, label(peerLabel(i), asm.Mov.Imm32(asm.R7, compareImm(p.Node.As4())), asm.Ja.Label("encap"))...)
	}
	insns = append(append(insns, t.outerHeader()...),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, ipLen),
		asm.Mov.Imm(asm.R3, roomMAC),
		asm.Mov.Imm(asm.R4, roomFixedGSO|roomEncapIPv4),
		asm.FnSkbAdjustRoom.Call(),
		asm.JNE.Imm(asm.R0, 0, "drop"),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, etherLen),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, header),
		asm.Mov.Imm(asm.R4, ipLen),
		asm.Mov.Imm(asm.R5, 0),
		asm.FnSkbStoreBytes.Call(),
		asm.JNE.Imm(asm.R0, 0, "drop"),
		asm.Sub.Imm(asm.R9, ipLen), // the inner length again, for the counter
	)
	insns = append(insns, count(countEncap)...)
	if t.Shaped {
		insns = append(insns,
			asm.LoadMem(asm.R1, asm.R6, skbIfindex, asm.Word),
			asm.Mov.Imm(asm.R2, 0), // to the egress
			asm.FnRedirect.Call(),
			asm.Return())
	}
	return append(insns, endings()...)
}

// decap returns the program for the uplink's ingress. It removes the outer header of IP-in-IP packets from a known node
// to this one; it passes all others unchanged.
func (t Tunnel) decap() asm.Instructions {
	insns := loadIPv4()
	insns = append(insns,
		asm.LoadMem(asm.R1, asm.RFP, header+9, asm.Byte),
		asm.JNE.Imm(asm.R1, protocolIPIP, "pass"),
		asm.LoadMem(asm.R1, asm.RFP, header, asm.Byte),
		asm.JNE.Imm(asm.R1, 0x45, "pass"), // no options
		asm.LoadMem(asm.R1, asm.RFP, header+6, asm.Half),
		asm.HostTo(asm.BE, asm.R1, asm.Half),
		asm.And.Imm(asm.R1, 0x3fff), // more fragments, offset
		asm.JNE.Imm(asm.R1, 0, "pass"),
		asm.LoadMem(asm.R1, asm.RFP, header+16, asm.Word),
		asm.HostTo(asm.BE, asm.R1, asm.Word),
		asm.JNE.Imm32(asm.R1, compareImm(t.Node.As4()), "pass"),
		asm.LoadMem(asm.R1, asm.RFP, header+12, asm.Word),
		asm.HostTo(asm.BE, asm.R1, asm.Word),
	)
	for _, p := range t.Peers {
		insns = append(insns, asm.JEq.Imm32(asm.R1, compareImm(p.Node.As4()), "decap"))
	}
	insns = append(insns, asm.Ja.Label("pass"))
	insns = append(insns, label("decap",
		asm.LoadMem(asm.R9, asm.R6, skbLen, asm.Word),
		asm.Sub.Imm(asm.R9, etherLen+ipLen),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, -ipLen),
		asm.Mov.Imm(asm.R3, roomMAC),
		asm.Mov.Imm(asm.R4, roomFixedGSO|roomDecapIPv4),
		asm.FnSkbAdjustRoom.Call(),
		asm.JNE.Imm(asm.R0, 0, "drop"))...)
	insns = append(insns, count(countDecap)...)
	return append(insns, endings()...)
}

func peerLabel(i int) string { return "peer" + strconv.Itoa(i) }

// choosePeer returns instructions that jump to the peer's label if the packet, whose source is in R8 and destination in
// R7, must go to that peer.
func (t Tunnel) choosePeer(i int, p Peer) asm.Instructions {
	next := "next" + strconv.Itoa(i)
	return append(asm.Instructions{
		asm.Mov.Reg32(asm.R1, asm.R7),
		asm.And.Imm32(asm.R1, mask(p.Pods)),
		asm.JEq.Imm32(asm.R1, compareImm(p.Pods.Masked().Addr().As4()), peerLabel(i)),
		asm.JNE.Imm32(asm.R7, compareImm(p.Node.As4()), next),
		asm.Mov.Reg32(asm.R1, asm.R8),
		asm.And.Imm32(asm.R1, mask(t.Pods)),
		asm.JEq.Imm32(asm.R1, compareImm(t.Pods.Masked().Addr().As4()), peerLabel(i)),
	}, label(next, asm.Mov.Imm(asm.R0, 0))...)
}

// mask returns the netmask of a prefix as a number.
func mask(p netip.Prefix) int32 { return int32(^uint32(0) << (32 - p.Bits())) }

// loadIPv4 returns instructions that save the context in R6 and copy the packet's IPv4 header to the stack.
func loadIPv4() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R1, asm.R6, skbProtocol, asm.Word),
		asm.JNE.Imm(asm.R1, int32(storeImm16(0x0800)), "pass"),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, etherLen),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, header),
		asm.Mov.Imm(asm.R4, ipLen),
		asm.FnSkbLoadBytes.Call(),
		asm.JNE.Imm(asm.R0, 0, "pass"),
	}
}

// outerHeader returns instructions that write the outer header for the node in R7 over the copy of the inner header,
// and leave its total length in R9. Don't Fragment is set, as by a tunnel device with path MTU discovery, so that the
// identification may be 0 (RFC 6864). The two ECN bits are copied from the inner packet (RFC 6040).
func (t Tunnel) outerHeader() asm.Instructions {
	src := t.Node.As4()
	constant := 0x4500 + 0x4000 + (encapTTL<<8 | protocolIPIP) +
		(int32(src[0])<<8 | int32(src[1])) + (int32(src[2])<<8 | int32(src[3]))
	insns := label("encap",
		asm.LoadMem(asm.R8, asm.RFP, header+1, asm.Byte),
		asm.And.Imm(asm.R8, 3),
		asm.LoadMem(asm.R9, asm.R6, skbLen, asm.Word),
		asm.Add.Imm(asm.R9, ipLen-etherLen),
		asm.JGT.Imm(asm.R9, 0xffff, "drop"),

		asm.StoreImm(asm.RFP, header, 0x45, asm.Byte),
		asm.StoreMem(asm.RFP, header+1, asm.R8, asm.Byte),
		asm.Mov.Reg(asm.R2, asm.R9),
		asm.HostTo(asm.BE, asm.R2, asm.Half),
		asm.StoreMem(asm.RFP, header+2, asm.R2, asm.Half),
		asm.StoreImm(asm.RFP, header+4, 0, asm.Half),
		asm.StoreImm(asm.RFP, header+6, storeImm16(0x4000), asm.Half),
		asm.StoreImm(asm.RFP, header+8, encapTTL, asm.Byte),
		asm.StoreImm(asm.RFP, header+9, protocolIPIP, asm.Byte),
		asm.StoreImm(asm.RFP, header+12, storeImm32(src), asm.Word),

		// The checksum: the ones' complement of the sum of the other fields (RFC 1071).
		asm.Mov.Imm(asm.R1, constant),
		asm.Add.Reg(asm.R1, asm.R8),
		asm.Add.Reg(asm.R1, asm.R9),
		asm.Mov.Reg(asm.R2, asm.R7),
		asm.RSh.Imm(asm.R2, 16),
		asm.Add.Reg(asm.R1, asm.R2),
		asm.Mov.Reg(asm.R2, asm.R7),
		asm.And.Imm(asm.R2, 0xffff),
		asm.Add.Reg(asm.R1, asm.R2),
	)
	for range 2 {
		insns = append(insns,
			asm.Mov.Reg(asm.R2, asm.R1),
			asm.RSh.Imm(asm.R2, 16),
			asm.And.Imm(asm.R1, 0xffff),
			asm.Add.Reg(asm.R1, asm.R2))
	}
	return append(insns,
		asm.Xor.Imm(asm.R1, 0xffff),
		asm.HostTo(asm.BE, asm.R1, asm.Half),
		asm.StoreMem(asm.RFP, header+10, asm.R1, asm.Half),
		asm.HostTo(asm.BE, asm.R7, asm.Word),
		asm.StoreMem(asm.RFP, header+16, asm.R7, asm.Word))
}

// count returns instructions that add a packet of R9 bytes to the counters at the offset.
func count(offset uint32) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapValue(asm.R1, 0, offset).WithReference(countersMap),
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreXAdd(asm.R1, asm.R2, asm.DWord),
		asm.AddAtomic.Mem(asm.R1, asm.R9, asm.DWord, 8),
	}
}

// endings returns the two endings of a program: one passes the packet, the other drops and counts it.
func endings() asm.Instructions {
	insns := label("pass", asm.Mov.Imm(asm.R0, tcxNext), asm.Return())
	return append(insns, label("drop",
		asm.LoadMapValue(asm.R1, 0, countErrors).WithReference(countersMap),
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreXAdd(asm.R1, asm.R2, asm.DWord),
		asm.Mov.Imm(asm.R0, tcxDrop),
		asm.Return())...)
}
