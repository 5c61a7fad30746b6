//go:build linux

package nft

import (
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"

	"github.com/knotmeter/knotmeter/internal/lab"
)

// A Ballast adds rules that every forwarded packet is compared with and that match no packet, like the rules of other
// Services and policies on a node.
type Ballast struct{ Rules int }

// batch is how many rules are sent to the kernel at once. The kernel answers each rule, and the answers must fit into
// the socket's buffer.
const batch = 50

// unusedMark is a packet mark that no packet has.
const unusedMark = 0x6b6e6f74

func (o Ballast) String() string {
	return fmt.Sprintf("nft inet forward %d times meta mark %#x drop", o.Rules, unusedMark)
}

// Apply makes a table with one chain.
func (o Ballast) Apply(*lab.Env) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open an nftables socket: %w", err)
	}
	table := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "ballast"})
	chain := conn.AddChain(&nftables.Chain{Name: "forward", Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter})
	const feature = "nftables (CONFIG_NF_TABLES_INET)"
	for n := range o.Rules {
		conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
			&expr.Meta{Key: expr.MetaKeyMARK, Register: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(unusedMark)},
			&expr.Verdict{Kind: expr.VerdictDrop},
		}})
		if n%batch == batch-1 {
			if err := flush(conn, feature); err != nil {
				return err
			}
		}
	}
	return flush(conn, feature)
}

// Feature returns the name of the feature that Probe tries.
func (o Ballast) Feature() string { return "nftables" }

// Probe adds one rule.
func (o Ballast) Probe(e *lab.Env) error { return Ballast{1}.Apply(e) }
