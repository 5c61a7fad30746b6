package targettest

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// placeOf returns the identifier of a twin's host.
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
		paths []result.Path
	}{
		{"all paths", func() *Twin { return &Twin{Label: "a"} }, result.Paths()},
		{"slow", func() *Twin { return &Twin{Label: "b", OpenTakes: 5 * time.Millisecond} },
			[]result.Path{result.PodPodOther}},
		{"nodes only", func() *Twin {
			unsupported := map[result.Path]string{}
			for _, p := range result.Paths()[1:] {
				unsupported[p] = "it has no pods"
			}
			return &Twin{Label: "c", Unsupported: unsupported, Environment: []result.Fact{{Name: "kernel", Value: "none"}}}
		}, []result.Path{result.NodeNode}},
	} {
		t.Run(test.name, func(t *testing.T) {
			Suite(t, Config{
				New:    func(*testing.T) targets.Target { twin = test.twin(); return twin },
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
	twin := &Twin{Label: "a", CloseFails: broken, OpenFails: func(n int, _ targets.Placement) error {
		if n == 1 {
			return broken
		}
		return nil
	}}
	p := targets.Placement{Path: result.PodPodOther}
	if _, err := targets.OpenOne(t.Context(), twin, p); !errors.Is(err, broken) {
		t.Errorf("first Open: %v", err)
	}
	site, err := targets.OpenOne(t.Context(), twin, p)
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
