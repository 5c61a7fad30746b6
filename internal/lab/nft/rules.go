//go:build linux

package nft

import (
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"

	"github.com/knotmeter/knotmeter/internal/lab"
)

// batch is how many rules are sent to the kernel at once. The kernel acknowledges each rule, and the acknowledgements
// must fit into the socket's buffer.
const batch = 50

// unusedMark is a packet mark that no packet has.
const unusedMark = 0x6b6e6f74

// UnusedRules returns an op that adds rules that every forwarded packet is compared with and that match no packet, like
// the rules of other Services and policies on a node.
func UnusedRules(rules int) lab.Op {
	return lab.Op{
		Text:    fmt.Sprintf("nft inet forward %d times meta mark %#x drop", rules, unusedMark),
		Apply:   func(*lab.Env) error { return addUnusedRules(rules) },
		Feature: "nftables",
		Probe:   func(*lab.Env) error { return addUnusedRules(1) },
	}
}

// addUnusedRules makes a table with one chain.
func addUnusedRules(rules int) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open an nftables socket: %w", err)
	}
	table := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "ballast"})
	chain := conn.AddChain(&nftables.Chain{Name: "forward", Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter})
	const feature = "nftables (CONFIG_NF_TABLES_INET)"
	for n := range rules {
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
