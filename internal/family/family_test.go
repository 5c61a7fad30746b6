package family_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/family/storage"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/result"
)

var families = family.List{network.Family(), storage.Family()}

// TestNamesRoundTrip checks that the name of every path with every workload is parsed as the same case.
func TestNamesRoundTrip(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range result.Paths() {
		for _, k := range netload.Kinds() {
			s := netload.Spec{Kind: k, Flows: 3}
			if k == netload.Unloaded {
				s.Flows = 0 // it has no parameters
			}
			w, err := s.Resolved()
			if err != nil {
				t.Fatal(err)
			}
			c := family.Case{Workload: network.Workload{Path: p, Spec: w}, Role: result.Exploratory}
			if seen[c.Name()] {
				t.Errorf("two cases are called %s", c.Name())
			}
			seen[c.Name()] = true
			if got, err := families.Parse(c.Name(), c.Workload.Traits().Definition); err != nil || got != c {
				t.Errorf("%s is read as %+v, %v", c.Name(), got, err)
			}
		}
	}
}

func TestParseCaseErrors(t *testing.T) {
	for name, want := range map[string]string{
		"":                            "does not begin with a path",
		"tcp-rr":                      "does not begin with a path",
		"pod-pod/tcp-rr":              "does not begin with a path",
		"pod-pod/other":               "does not begin with a path",
		"pod-pod/other/":              "no workload",
		"pod-pod/other/tcp-xx":        "tcp-xx",
		"pod-pod/other/tcp-rr:size=1": "it is a parameter of streams, ping; tcp-rr has flows",
		"pod-pod/other/same/tcp-rr":   "same/tcp-rr",
		"node-node/same/tcp-rr":       "same/tcp-rr",
	} {
		if _, err := families.Parse(name, ""); !errors.Is(err, family.ErrNoCase) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v does not say %q", name, err, want)
		}
	}
}

func TestImportedCase(t *testing.T) {
	one := result.Load{Outstanding: 1}
	for name, want := range map[string]result.Case{
		"pod-pod/other/tcp-rr": {Path: "pod-pod/other", Workload: "tcp-rr", Load: one},
		"node-node/udp-rr:flows=3": {Path: "node-node", Workload: "udp-rr:flows=3",
			Load: result.Load{Outstanding: 3}},
		"pod-pod/other/tcp-rr:rate=5": {Path: "pod-pod/other", Workload: "tcp-rr:rate=5"},
		"pod-pod/same/tcp-stream":     {Path: "pod-pod/same", Workload: "tcp-stream"},
		"tcp-stream:direction=both":   {Workload: "tcp-stream:direction=both", Load: result.Load{BothWays: true}},
		"tcp-crr":                     {Workload: "tcp-crr", Load: one},
		"pod-pod/other/sctp-rr":       {Path: "pod-pod/other", Workload: "sctp-rr"},
		"storage/tcp-rr":              {Path: "storage", Workload: "tcp-rr", Load: result.Load{Volume: true}},
		"storage/randread-4k-qd1": {Path: "storage", Workload: "randread-4k-qd1",
			Load: result.Load{Volume: true, Reads: true, SingleReads: true}},
		"storage/randread-4k-qd1-jobs2": {Path: "storage", Workload: "randread-4k-qd1-jobs2",
			Load: result.Load{Volume: true, Reads: true}},
		"storage/randrw70-4k-qd1": {Path: "storage", Workload: "randrw70-4k-qd1",
			Load: result.Load{Volume: true, Reads: true}},
		"storage/write-2300-qd1-fdatasync": {Path: "storage", Workload: "write-2300-qd1-fdatasync",
			Load: result.Load{Volume: true}},
		"a page": {Workload: "a page"},
	} {
		want.Name, want.Role = name, result.Exploratory
		if got := families.ImportedCase(name); got != want {
			t.Errorf("%q is %+v, wanted %+v", name, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"node-node/tcp-rr", "storage/rw-1m-qd1",
		"pod-pod/other/udp-stream:rate=5,size=64", "pod-svc/same/", "/"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		c, err := families.Parse(name, "")
		if err != nil {
			if !errors.Is(err, family.ErrNoCase) {
				t.Errorf("%q: %v is not family.ErrNoCase", name, err)
			}
			return
		}
		if again, err := families.Parse(c.Name(), c.Workload.Traits().Definition); err != nil || again != c {
			t.Errorf("%q is %+v, called %s, read as %+v, %v", name, c, c.Name(), again, err)
		}
	})
}

func ExampleList_Parse() {
	c, err := families.Parse("pod-pod/other/tcp-stream:flows=4,size=16KiB", "")
	traits := c.Workload.Traits()
	fmt.Println(traits.Path, traits.Metric, c.Name(), err)
	// Output: pod-pod/other throughput pod-pod/other/tcp-stream:flows=4,size=16384 <nil>
}
