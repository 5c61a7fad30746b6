package network

import (
	"fmt"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/result"
)

func TestSuites(t *testing.T) {
	for _, s := range []family.Suite{fullSuite(), quickSuite()} {
		var b strings.Builder
		fmt.Fprintf(&b, "%s: %s\n", s.Name, s.About)
		for _, c := range s.Cases {
			fmt.Fprintf(&b, "%-36s %-12s %s\n", c.Name(), c.Role, c.Workload.Traits().Metric)
		}
		golden.Check(t, "testdata/"+strings.ReplaceAll(s.Name, ":", "-")+".golden", b.String())
	}
}

// TestNamesParse checks that Parse restores each case from its name, which is all that a results directory keeps of it.
func TestNamesParse(t *testing.T) {
	for _, s := range []family.Suite{fullSuite(), quickSuite()} {
		seen := map[string]bool{}
		for _, c := range s.Cases {
			if seen[c.Name()] {
				t.Errorf("%s has %s twice", s.Name, c.Name())
			}
			seen[c.Name()] = true
			got, err := family.List{Family()}.Parse(c.Name(), c.Workload.Traits().Definition)
			if err != nil {
				t.Error(err)
				continue
			}
			got.Role = c.Role
			if got != c {
				t.Errorf("%s reads back as %+v, was %+v", c.Name(), got, c)
			}
		}
	}
}

func TestPrimaries(t *testing.T) {
	count := func(s family.Suite, r result.Role) (n int) {
		for _, c := range s.Cases {
			if c.Role == r {
				n++
			}
		}
		return n
	}
	if n := count(fullSuite(), result.Primary); n < 1 || n > 5 {
		t.Errorf("network has %d primary cases, wanted at most five", n)
	}
	if n := len(fullSuite().Cases); n != 54 {
		t.Errorf("network has %d cases, wanted nine paths times six workloads", n)
	}
	if p, b := count(quickSuite(), result.Primary), count(quickSuite(), result.Bound); p != 6 || b != 3 {
		t.Errorf("network:quick has %d primary cases and %d bounds, wanted 6 and 3", p, b)
	}
}
