//go:build linux

package nft

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/lab"
)

// A TProxy hands TCP connections that pass a node from one network to others to a proxy of the node, which accepts them
// at their own destination. The packets get a mark, by which they must be routed to the node itself. They are not
// tracked, and so not translated: after a translation, connections to a Service and to its endpoint could have the same
// addresses.
type TProxy struct {
	From lab.DualPrefix // this prefix and those of To have whole bytes
	To   []lab.DualPrefix
	Port uint16 // where the proxy listens, with IP_TRANSPARENT
	Mark uint32
}

// Op returns the op that adds the rules.
func (o TProxy) Op() lab.Op {
	var pairs []string
	for _, to := range o.To {
		pairs = append(pairs, fmt.Sprintf("%s to %s, %s to %s", o.From.V4, to.V4, o.From.V6, to.V6))
	}
	add := func(*lab.Env) error { return o.add() }
	return lab.Op{
		Text: fmt.Sprintf("nft prerouting tcp from %s tproxy to :%d meta mark set %#x; these and the answers notrack",
			strings.Join(pairs, ", "), o.Port, o.Mark),
		Apply: add, Feature: "nftables with TPROXY", Probe: add,
	}
}

// add makes a table for each IP version, with three chains that have a rule for each network.
func (o TProxy) add() error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open an nftables socket: %w", err)
	}
	for _, ipv6 := range []bool{false, true} {
		family := nftables.TableFamilyIPv4
		if ipv6 {
			family = nftables.TableFamilyIPv6
		}
		table := conn.AddTable(&nftables.Table{Family: family, Name: "mesh"})
		chain := func(name string, hook *nftables.ChainHook, priority *nftables.ChainPriority) *nftables.Chain {
			return conn.AddChain(&nftables.Chain{
				Name: name, Table: table, Type: nftables.ChainTypeFilter, Hooknum: hook, Priority: priority,
			})
		}
		untracked := chain("untracked", nftables.ChainHookPrerouting, nftables.ChainPriorityRaw)
		answers := chain("answers", nftables.ChainHookOutput, nftables.ChainPriorityRaw)
		redirected := chain("redirected", nftables.ChainHookPrerouting, nftables.ChainPriorityMangle)
		from := o.From.Of(ipv6)
		for _, dual := range o.To {
			to := dual.Of(ipv6)
			add := func(chain *nftables.Chain, from, to netip.Prefix, do ...expr.Any) {
				conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: append(tcpBetween(from, to), do...)})
			}
			add(untracked, from, to, &expr.Notrack{})
			add(answers, to, from, &expr.Notrack{})
			add(redirected, from, to,
				&expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(o.Port)},
				&expr.TProxy{Family: byte(family), RegPort: 1},
				&expr.Immediate{Register: 1, Data: binaryutil.NativeEndian.PutUint32(o.Mark)},
				&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: 1})
		}
	}
	return flush(conn, "nftables with TPROXY (CONFIG_NF_TABLES, CONFIG_NFT_TPROXY)")
}

// tcpBetween returns the conditions for TCP from one network to another.
func tcpBetween(from, to netip.Prefix) []expr.Any {
	src, dst := uint32(12), uint32(16)
	if from.Addr().Is6() {
		src, dst = 8, 24
	}
	inNetwork := func(offset uint32, p netip.Prefix) []expr.Any {
		bytes := p.Bits() / 8
		return []expr.Any{
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: uint32(bytes)},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: p.Masked().Addr().AsSlice()[:bytes]},
		}
	}
	return slices.Concat(inNetwork(src, from), inNetwork(dst, to), []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
	})
}
