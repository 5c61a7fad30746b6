package targettest

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
)

// placeOf asks a twin's host which place it is.
func placeOf(t *testing.T, h host.Host) string {
	var out bytes.Buffer
	if err := h.Run(t.Context(), host.Cmd{Args: []string{"place"}, Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTwin(t *testing.T) {
	var twin *Twin
	for _, test := range []struct {
		name  string
		twin  func() *Twin
		paths []target.Path
	}{
		{"all paths", func() *Twin { return &Twin{Label: "a"} }, target.Paths()},
		{"slow", func() *Twin { return &Twin{Label: "b", OpenTakes: 5 * time.Millisecond} },
			[]target.Path{target.PodPodOther}},
		{"nodes only", func() *Twin {
			unsupported := map[target.Path]string{}
			for _, p := range target.Paths()[1:] {
				unsupported[p] = "it has no pods"
			}
			return &Twin{Label: "c", Unsupported: unsupported, Environment: []result.Fact{{Name: "kernel", Value: "none"}}}
		}, []target.Path{target.NodeNode}},
	} {
		t.Run(test.name, func(t *testing.T) {
			Suite(t, Config{
				New:    func(*testing.T) target.Target { twin = test.twin(); return twin },
				Offers: On(test.paths...),
				Left: func(*testing.T) []string {
					if twin == nil {
						return nil
					}
					return twin.Left()
				},
				Place: placeOf,
			})
		})
	}
}

func TestTwinFails(t *testing.T) {
	broken := errors.New("no more room")
	twin := &Twin{Label: "a", CloseFails: broken, OpenFails: func(n int, _ target.Placement) error {
		if n == 1 {
			return broken
		}
		return nil
	}}
	p := target.Placement{Path: target.PodPodOther}
	if _, err := target.One(t.Context(), twin, p); !errors.Is(err, broken) {
		t.Errorf("first Open: %v", err)
	}
	site, err := target.One(t.Context(), twin, p)
	if err != nil {
		t.Fatal(err)
	}
	if Label(site.Client) != "a" {
		t.Errorf("label of %s is %q", site.Client.Name(), Label(site.Client))
	}
	if len(twin.Left()) != 2 || twin.Opens() != 2 {
		t.Errorf("left %v, opens %d", twin.Left(), twin.Opens())
	}
	if err := site.Close(t.Context()); !errors.Is(err, broken) || len(twin.Left()) != 0 {
		t.Errorf("close: %v, left %v", err, twin.Left())
	}
}
