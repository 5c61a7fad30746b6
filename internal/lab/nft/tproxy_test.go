//go:build linux

package nft_test

import (
	"reflect"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/nft"
)

// TestTProxy checks that the kernel takes a rule for each network in each chain. The datapath checks of package lab
// show what they do.
func TestTProxy(t *testing.T) {
	inNamespace(t, nil, func() error {
		to := []lab.DualPrefix{lab.PodsNet(), lab.ServiceNet()}
		if err := (nft.TProxy{From: lab.PodNet(1), To: to, Port: 15001, Mark: 1}).Op().Apply(nil); err != nil {
			return err
		}
		conn, err := nftables.New()
		if err != nil {
			return err
		}
		for _, family := range []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyIPv6} {
			table := &nftables.Table{Name: "mesh", Family: family}
			for chain, last := range map[string]expr.Any{
				"untracked": &expr.Notrack{}, "answers": &expr.Notrack{}, "redirected": &expr.Meta{},
			} {
				rules, err := conn.GetRules(table, &nftables.Chain{Name: chain, Table: table})
				if err != nil {
					return err
				}
				if len(rules) != len(to) {
					t.Errorf("%v %s: %d rules", family, chain, len(rules))
				}
				for _, r := range rules {
					if got := r.Exprs[len(r.Exprs)-1]; reflect.TypeOf(got) != reflect.TypeOf(last) {
						t.Errorf("%v %s: a rule ends with %T", family, chain, got)
					}
				}
			}
		}
		return nil
	})
}
