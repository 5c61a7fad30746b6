package report

import (
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

func TestOfferText(t *testing.T) {
	o := Offer{
		Target: "kube:production", Offered: []string{"9 of 9 paths", "the API server"},
		Refusals: []Refusal{{[]string{"storage", "Vault"}, "there is no disk"},
			{[]string{"node-node"}, "could not tell: the line is cut"}},
		Facts: []result.Fact{{Name: "kernel", Value: "6.18"}},
	}
	want := `kube:production          9 of 9 paths and the API server
    not storage, Vault:
      there is no disk
    not node-node:
      could not tell: the line is cut
    kernel                   6.18
`
	if got := render(t, func(b *strings.Builder) error { return OfferText(b, o) }); got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
}
