//go:build linux

package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/result"
)

// translated are the chains in which a node translates: what enters it, and what its own processes send.
var translated = map[string]*nftables.ChainHook{
	"prerouting": nftables.ChainHookPrerouting,
	"output":     nftables.ChainHookOutput,
}

// Services are translated by the nftables of each node.
type Services struct{}

// Name is nftables.
func (Services) Name() string { return "nftables" }

// Extend gives every node the Services of all pods that the plan has, TCP and UDP, IPv4 and IPv6. A plan without pods
// stays as it is.
func (Services) Extend(p *lab.Plan, t lab.Topology) {
	var services []Service
	for n := 1; n <= t.Nodes; n++ {
		for m := 1; m <= lab.PodsPerNode; m++ {
			if slices.Contains(p.Namespaces, lab.Pod(n, m)) {
				services = append(services, Service{lab.ServiceAddr(n, m), lab.PodAddr(n, m)})
			}
		}
	}
	if len(services) == 0 {
		return
	}
	for n := 1; n <= t.Nodes; n++ {
		// A process looks for a route and so for its source address before the translation.
		for i, dst := range lab.ServiceNet().All() {
			p.Add(lab.Node(n), lab.Route{Dst: dst, Dev: lab.Uplink, Src: lab.NodeAddr(n).All()[i]})
		}
		p.Add(lab.Node(n), DNAT(services))
	}
}

// A Service is an address and that of its only endpoint, both at lab.ServicePort.
type Service struct{ Addr, Endpoint lab.Dual }

// DNAT translates the addresses of Services to those of their endpoints.
type DNAT []Service

func (o DNAT) String() string {
	pairs := make([]string, len(o))
	for i, s := range o {
		pairs[i] = fmt.Sprintf("%s>%s %s>%s", s.Addr.V4, s.Endpoint.V4, s.Addr.V6, s.Endpoint.V6)
	}
	return fmt.Sprintf("nft dnat tcp,udp port %d at prerouting,output map %s", lab.ServicePort, strings.Join(pairs, " "))
}

// Apply makes a table per family with the map, two chains and a rule in each.
func (o DNAT) Apply(*lab.Env) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open an nftables socket: %w", err)
	}
	for _, family := range []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyIPv6} {
		if err := o.table(conn, family); err != nil {
			return err
		}
	}
	err = conn.Flush()
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EPROTONOSUPPORT) {
		return result.NotSupported("this kernel has no nftables with NAT (CONFIG_NF_TABLES, CONFIG_NFT_NAT)")
	}
	return err
}

// Feature is nftables.
func (o DNAT) Feature() string { return "nftables with NAT" }

// Probe makes the tables.
func (o DNAT) Probe(e *lab.Env) error { return o.Apply(e) }

func (o DNAT) table(conn *nftables.Conn, family nftables.TableFamily) error {
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
	if err := conn.AddSet(set, o.elements(ip6)); err != nil {
		return fmt.Errorf("map of endpoints: %w", err)
	}
	for name, hook := range translated {
		chain := conn.AddChain(&nftables.Chain{
			Name: name, Table: table, Type: nftables.ChainTypeNAT, Hooknum: hook, Priority: nftables.ChainPriorityNATDest,
		})
		conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: translate(set, ip6)})
	}
	return nil
}

// elements are the map's: address, protocol and port to address and port. Every field takes a multiple of four bytes.
func (o DNAT) elements(ip6 bool) []nftables.SetElement {
	port := binary.BigEndian.AppendUint16(nil, lab.ServicePort)
	port = append(port, 0, 0)
	bytes := func(a netip.Addr) []byte { return a.AsSlice() }
	var elements []nftables.SetElement
	for _, s := range o {
		for _, proto := range []byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
			elements = append(elements, nftables.SetElement{
				Key: slices.Concat(bytes(s.Addr.Of(ip6)), []byte{proto, 0, 0, 0}, port),
				Val: slices.Concat(bytes(s.Endpoint.Of(ip6)), port),
			})
		}
	}
	return elements
}

// translate is "dnat to daddr . l4proto . dport map @endpoints". A packet whose destination is not in the map goes on.
func translate(set *nftables.Set, ip6 bool) []expr.Any {
	// The first register is 16 bytes; the numbers from 8 on name its parts and those after it, four bytes each.
	const first, parts = 1, 8
	offset, size, family := uint32(16), uint32(4), uint32(unix.NFPROTO_IPV4)
	if ip6 {
		offset, size, family = 24, 16, unix.NFPROTO_IPV6
	}
	next := parts + size/4
	return []expr.Any{
		&expr.Payload{DestRegister: first, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: size},
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: next},
		&expr.Payload{DestRegister: next + 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Lookup{SourceRegister: first, DestRegister: first, IsDestRegSet: true, SetName: set.Name, SetID: set.ID},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: family, RegAddrMin: first, RegProtoMin: next, Specified: true},
	}
}
