//go:build linux

package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/result"
)

// natHooks maps the names of the chains in which a node translates packets to their hooks: for packets that enter the
// node, and for those that its own processes send.
var natHooks = map[string]*nftables.ChainHook{
	"prerouting": nftables.ChainHookPrerouting,
	"output":     nftables.ChainHookOutput,
}

// Extend adds the Services of all pods of a plan to the nftables of every node, for TCP and UDP, IPv4 and IPv6. A plan
// without pods is not changed.
func Extend(p *lab.Plan, t lab.Topology) {
	services := p.Services(t)
	if len(services) == 0 {
		return
	}
	for n := range t.EachNode() {
		// The route, and with it the source address, is looked up before the translation.
		for i, dst := range lab.ServiceNet().All() {
			p.Add(lab.Node(n), lab.Route(netns.Route{Dst: dst, Dev: lab.Uplink, Src: p.NodeAddr(n).All()[i]}))
		}
		p.Add(lab.Node(n), DNAT(services))
	}
}

// DNAT returns an op that translates the addresses of Services to those of their endpoints.
func DNAT(services []lab.Service) lab.Op {
	pairs := make([]string, len(services))
	for i, s := range services {
		pairs[i] = fmt.Sprintf("%s>%s %s>%s", s.Addr.V4, s.Endpoint.V4, s.Addr.V6, s.Endpoint.V6)
	}
	add := func(*lab.Env) error { return addTables(services) }
	return lab.Op{
		Text: fmt.Sprintf("nft dnat tcp,udp port %d at prerouting,output map %s",
			lab.ServicePort, strings.Join(pairs, " ")),
		Apply: add, Feature: "nftables with NAT", Probe: add,
	}
}

// addTables makes a table for each IP version, with a map, two chains and a rule in each chain.
func addTables(services []lab.Service) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open an nftables socket: %w", err)
	}
	for _, family := range []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyIPv6} {
		if err := addTable(conn, services, family); err != nil {
			return err
		}
	}
	return flush(conn, "nftables with NAT (CONFIG_NF_TABLES, CONFIG_NFT_NAT)")
}

// flush sends the pending changes. The error Is result.ErrNotSupported if the kernel lacks the feature.
func flush(conn *nftables.Conn, feature string) error {
	err := conn.Flush()
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EPROTONOSUPPORT) {
		return result.NotSupported("this kernel has no " + feature)
	}
	return err
}

func addTable(conn *nftables.Conn, services []lab.Service, family nftables.TableFamily) error {
	ip6 := family == nftables.TableFamilyIPv6
	addr := nftables.TypeIPAddr
	if ip6 {
		addr = nftables.TypeIP6Addr
	}
	table := conn.AddTable(&nftables.Table{Family: family, Name: "services"})
	set := &nftables.Set{
		Table: table, Name: "endpoints", IsMap: true, Concatenation: true,
		KeyType:  nftables.MustConcatSetType(addr, nftables.TypeInetProto, nftables.TypeInetService),
		DataType: nftables.MustConcatSetType(addr, nftables.TypeInetService),
	}
	if err := conn.AddSet(set, mapElements(services, ip6)); err != nil {
		return fmt.Errorf("map of endpoints: %w", err)
	}
	for name, hook := range natHooks {
		chain := conn.AddChain(&nftables.Chain{
			Name: name, Table: table, Type: nftables.ChainTypeNAT, Hooknum: hook, Priority: nftables.ChainPriorityNATDest,
		})
		conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: dnatExprs(set, ip6)})
	}
	return nil
}

// mapElements returns the elements of the map from address, protocol and port to address and port. Every field is
// padded to a multiple of four bytes.
func mapElements(services []lab.Service, ip6 bool) []nftables.SetElement {
	port := append(binary.BigEndian.AppendUint16(nil, lab.ServicePort), 0, 0)
	var elements []nftables.SetElement
	for _, s := range services {
		for _, proto := range []byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
			elements = append(elements, nftables.SetElement{
				Key: slices.Concat(s.Addr.Of(ip6).AsSlice(), []byte{proto, 0, 0, 0}, port),
				Val: slices.Concat(s.Endpoint.Of(ip6).AsSlice(), port),
			})
		}
	}
	return elements
}

// dnatExprs returns the rule "dnat to daddr . l4proto . dport map @endpoints". Packets whose destination is not in the
// map continue.
func dnatExprs(set *nftables.Set, ip6 bool) []expr.Any {
	// Register 1 has 16 bytes. Registers from 8 on have four bytes each: 8 to 11 are the parts of register 1, and the
	// next four those of register 2.
	const first, firstWord = 1, 8
	offset, size, family := uint32(16), uint32(4), uint32(unix.NFPROTO_IPV4)
	if ip6 {
		offset, size, family = 24, 16, unix.NFPROTO_IPV6
	}
	next := firstWord + size/4
	return []expr.Any{
		&expr.Payload{DestRegister: first, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: size},
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: next},
		&expr.Payload{DestRegister: next + 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Lookup{SourceRegister: first, DestRegister: first, IsDestRegSet: true, SetName: set.Name, SetID: set.ID},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: family, RegAddrMin: first, RegProtoMin: next, Specified: true},
	}
}
