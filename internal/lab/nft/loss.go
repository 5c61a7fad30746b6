//go:build linux

package nft

import (
	"fmt"
	"math"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/lab"
)

// A Loss drops IP packets that a device receives, independently and with the same probability, before any other
// processing. ARP is not affected.
type Loss struct {
	Dev         string
	Probability float64 // from 0 to 1, in steps of one in a million
}

// lossScale is the range of the random numbers.
const lossScale = 1_000_000

func (o Loss) String() string {
	return fmt.Sprintf("nft netdev ingress %s ip,ip6 numgen random mod %d < %d drop", o.Dev, lossScale, o.threshold())
}

func (o Loss) threshold() uint32 { return uint32(math.Round(o.Probability * lossScale)) }

// Apply makes a table with one chain, and a rule for each IP version.
func (o Loss) Apply(*lab.Env) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open an nftables socket: %w", err)
	}
	table := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyNetdev, Name: "loss"})
	first := nftables.ChainPriority(0)
	chain := conn.AddChain(&nftables.Chain{
		Name: "ingress", Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookIngress, Priority: &first, Device: o.Dev,
	})
	for _, protocol := range []uint16{unix.ETH_P_IP, unix.ETH_P_IPV6} {
		conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
			&expr.Meta{Key: expr.MetaKeyPROTOCOL, Register: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(protocol)},
			&expr.Numgen{Register: 1, Modulus: lossScale, Type: unix.NFT_NG_RANDOM},
			// The kernel compares bytes in memory order, so the number is converted to big-endian.
			&expr.Byteorder{SourceRegister: 1, DestRegister: 1, Op: expr.ByteorderHton, Len: 4, Size: 4},
			&expr.Cmp{Op: expr.CmpOpLt, Register: 1, Data: binaryutil.BigEndian.PutUint32(o.threshold())},
			&expr.Verdict{Kind: expr.VerdictDrop},
		}})
	}
	return flush(conn, "nftables at ingress with random numbers (CONFIG_NF_TABLES_NETDEV, CONFIG_NFT_NUMGEN)")
}

// Feature returns the name of the feature that Probe tries.
func (o Loss) Feature() string { return "nftables at ingress" }

// Probe adds the rules for the loopback device.
func (o Loss) Probe(e *lab.Env) error { return Loss{"lo", o.Probability}.Apply(e) }
