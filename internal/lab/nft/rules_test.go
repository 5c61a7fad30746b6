//go:build linux

package nft_test

import (
	"testing"

	"github.com/google/nftables"

	"github.com/knotmeter/knotmeter/internal/lab/nft"
)

// TestUnusedRules checks that all rules are added, more than are sent at once.
func TestUnusedRules(t *testing.T) {
	const want = 170
	inNamespace(t, nil, func() error {
		if err := nft.UnusedRules(want).Apply(nil); err != nil {
			return err
		}
		conn, err := nftables.New()
		if err != nil {
			return err
		}
		table := &nftables.Table{Name: "ballast", Family: nftables.TableFamilyINet}
		rules, err := conn.GetRules(table, &nftables.Chain{Name: "forward", Table: table})
		if len(rules) != want {
			t.Errorf("%d rules", len(rules))
		}
		return err
	})
}
