package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
)

// A factSink keeps the facts that were written last.
type factSink struct {
	runner.Sink
	facts []result.Fact
}

func (s *factSink) WriteFacts(_ string, facts []result.Fact) error {
	s.facts = facts
	return nil
}

// TestStatedFacts checks that facts stated by users replace collected ones, for one target or for all, and are marked.
func TestStatedFacts(t *testing.T) {
	given := statedFacts{"link-rate=10Gbit/s", "kube:a:link-rate=1.25 Gbit/s", "kube:b:limit-iops=2400/s", "vm=D4as_v5"}
	if err := given.check("kube:a", "kube:b", "c"); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{
		"kube:a": "kernel=6.1 link-rate=1.25 Gbit/s vm=D4as_v5 told=link-rate, vm",
		"kube:b": "kernel=6.1 link-rate=10Gbit/s limit-iops=2400/s vm=D4as_v5 told=link-rate, limit-iops, vm",
		"c":      "kernel=6.1 link-rate=10Gbit/s vm=D4as_v5 told=link-rate, vm",
	} {
		var s factSink
		found := []result.Fact{{Name: "kernel", Value: "6.1"}, {Name: "link-rate", Value: "unknown"}}
		if err := (statedSink{&s, given}).WriteFacts(target, slices.Clone(found)); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range s.facts {
			got = append(got, f.Name+"="+f.Value)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, and not %s", target, strings.Join(got, " "), want)
		}
	}
	for text, want := range map[string]string{
		"kube:x:link-rate=1Gbit/s": "there is no target kube:x", "link-rate": "is not NAME=VALUE", "=x": "is not NAME=VALUE",
		"kube:a:link-rate=fast": "a number above 0 with its unit", "limit-iops=5Gbit/s": "such as 2400/s",
		"limit-throughput=-1MB/s": "a number above 0", "told=x": "is not NAME=VALUE",
	} {
		if err := (statedFacts{text}).check("kube:a"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
