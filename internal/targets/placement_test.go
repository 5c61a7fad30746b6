package targets

import (
	"errors"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

// TestCheckPlacement checks that a placement has at most one of a path, a volume, a call and an application, and that
// its path is one of the nine.
func TestCheckPlacement(t *testing.T) {
	for _, p := range []Placement{
		{}, {Path: result.PodSvcOther, Rotation: 3}, {Volume: true, Program: "fio"}, {AsksAPI: true}, {Application: "vault"},
		{Machine: true, Program: "sysbench"},
	} {
		if err := p.Check(); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
	for _, p := range []Placement{
		{Path: "storage"}, {Path: result.NodeNode, Volume: true}, {Volume: true, AsksAPI: true},
		{AsksAPI: true, Application: "vault"}, {Machine: true, Path: result.NodeNode},
	} {
		if err := p.Check(); !errors.Is(err, result.ErrNotSupported) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}
