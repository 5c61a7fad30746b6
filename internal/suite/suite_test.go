package suite

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/workload"
)

// Every path with every workload has a name that is read back as the same case.
func TestNamesRoundTrip(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range target.Paths() {
		for _, k := range workload.Kinds() {
			w, err := workload.Spec{Kind: k, Flows: 3}.Resolved()
			if err != nil {
				t.Fatal(err)
			}
			c := Case{Path: p, Workload: w, Role: result.Exploratory}
			if seen[c.Name()] {
				t.Errorf("two cases are called %s", c.Name())
			}
			seen[c.Name()] = true
			if got, err := ParseCase(c.Name(), c.Definition()); err != nil || got != c {
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
		"pod-pod/other/tcp-rr:size=1": "no such parameter",
		"pod-pod/other/same/tcp-rr":   "same/tcp-rr",
		"node-node/same/tcp-rr":       "same/tcp-rr",
	} {
		if _, err := ParseCase(name, ""); !errors.Is(err, ErrNoCase) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v does not say %q", name, err, want)
		}
	}
}

func FuzzParseCase(f *testing.F) {
	for _, name := range []string{"node-node/tcp-rr", "pod-pod/other/udp-stream:rate=5,size=64", "pod-svc/same/", "/"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		c, err := ParseCase(name, "")
		if err != nil {
			if !errors.Is(err, ErrNoCase) {
				t.Errorf("%q: %v is not ErrNoCase", name, err)
			}
			return
		}
		if again, err := ParseCase(c.Name(), c.Definition()); err != nil || again != c {
			t.Errorf("%q is %+v, called %s, read as %+v, %v", name, c, c.Name(), again, err)
		}
	})
}

func ExampleParseCase() {
	c, err := ParseCase("pod-pod/other/tcp-stream:flows=4,size=16KiB", "")
	fmt.Println(c.Path, c.Workload.Flows, c.Name(), err)
	// Output: pod-pod/other 4 pod-pod/other/tcp-stream:flows=4,size=16384 <nil>
}
