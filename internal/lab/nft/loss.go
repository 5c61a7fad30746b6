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

// lossScale is the range of the random numbers.
const lossScale = 1_000_000

// Loss returns an op that drops IP packets that a device receives, independently and with the same probability (in
// steps of one in a million), before any other processing. ARP is not affected.
func Loss(dev string, probability float64) lab.Op {
	threshold := uint32(math.Round(probability * lossScale))
	return lab.Op{
		Text:    fmt.Sprintf("nft netdev ingress %s ip,ip6 numgen random mod %d < %d drop", dev, lossScale, threshold),
		Apply:   func(*lab.Env) error { return addLoss(dev, threshold) },
		Feature: "nftables at ingress",
		Probe:   func(*lab.Env) error { return addLoss("lo", threshold) },
	}
}

// addLoss makes a table with one chain, and a rule for each IP version.
func addLoss(dev string, threshold uint32) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open an nftables socket: %w", err)
	}
	table := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyNetdev, Name: "loss"})
	first := nftables.ChainPriority(0)
	chain := conn.AddChain(&nftables.Chain{
		Name: "ingress", Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookIngress, Priority: &first, Device: dev,
	})
	for _, protocol := range []uint16{unix.ETH_P_IP, unix.ETH_P_IPV6} {
		conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
			&expr.Meta{Key: expr.MetaKeyPROTOCOL, Register: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(protocol)},
			&expr.Numgen{Register: 1, Modulus: lossScale, Type: unix.NFT_NG_RANDOM},
			// The kernel compares bytes in memory order, so the number is converted to big-endian.
			&expr.Byteorder{SourceRegister: 1, DestRegister: 1, Op: expr.ByteorderHton, Len: 4, Size: 4},
			&expr.Cmp{Op: expr.CmpOpLt, Register: 1, Data: binaryutil.BigEndian.PutUint32(threshold)},
			&expr.Verdict{Kind: expr.VerdictDrop},
		}})
	}
	return flush(conn, "nftables at ingress with random numbers (CONFIG_NF_TABLES_NETDEV, CONFIG_NFT_NUMGEN)")
}
