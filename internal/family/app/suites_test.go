package app

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/app/webapp"
	"github.com/knotmeter/knotmeter/internal/golden"
)

func TestSuites(t *testing.T) {
	var text strings.Builder
	for _, s := range suites() {
		fmt.Fprintf(&text, "%s: %s (%v)\n", s.Name, s.About, s.Duration)
		for _, c := range s.Cases {
			fmt.Fprintf(&text, "  %-32s %-12s %s\n", c.Name(), c.Role, c.Workload.Traits().Metric)
			again, err := family.List{Family()}.Parse(c.Name(), c.Workload.Traits().Definition)
			if err != nil || again.Workload != c.Workload {
				t.Errorf("%s: %v", c.Name(), err)
			}
		}
	}
	golden.Check(t, "testdata/suites.golden", text.String())
}

func TestFile(t *testing.T) {
	s, err := fileSuite("dir/my,apps.yaml", []byte("shop:\n  url: http://x\n  loads: [rate=50, knee=20ms]\n  requests: "+
		"[{name: a, path: /}]\ncart:\n  url: http://y\n  requests: [{name: a, path: /}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range s.Cases {
		names = append(names, c.Name())
		again, err := family.List{Family()}.Parse(c.Name(), c.Workload.Traits().Definition)
		if err != nil || again.Workload != c.Workload {
			t.Errorf("%+v, %v", again, err)
		}
	}
	if got := strings.Join(names, " "); s.Name != "app:my_apps.yaml" ||
		got != "app/http/cart:rate=100 app/http/shop:rate=50 app/http/shop:knee=20ms" {
		t.Errorf("%s: %s", s.Name, got)
	}
	for text, want := range map[string]string{
		"url: http://x\nloads: [fast]\nrequests: [{name: a, path: /}]\n":             "loads: ",
		"url: http://x\nloads: [rate=1000000000]\nrequests: [{name: a, path: /}]\n":  "rate=",
		"url: http://x\nlodas: [rate=1]\nrequests: [{name: a, path: /}]\n":           "f.yaml:2: ",
		"'a b':\n  url: http://x\n  requests: [{name: a, path: /}]\n":                "a name is letters",
		"url: http://x\nloads: ['rate=1,clients=2']\nrequests: [{name: a, path: /}]": "one of rate",
	} {
		if _, err := fileSuite("f.yaml", []byte(text)); !errors.Is(err, webapp.ErrDescription) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v does not say %q", text, err, want)
		}
	}
}
