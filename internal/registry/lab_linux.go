package registry

import (
	"errors"

	"github.com/knotmeter/knotmeter/internal/cgroup"
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// clean removes the control groups that remain after a lab's holder was killed. Running labs lock theirs. Control
// groups of other programs are never removed, not even with --all.
func clean(how targets.Cleaning) ([]string, error) {
	return cgroup.Clean(func(dir string) bool { return how.Report(dir, "") }, func(dir string) {
		how.Found(targets.Leftover{Name: dir, Reason: "a control group with a name like Knotmeter's, and without its mark"})
	})
}

// features starts a lab and returns which features its kernel supports.
func features() ([]lab.Finding, error) {
	l, err := lab.Start(labConfig())
	if err != nil {
		return nil, err
	}
	found, err := l.Features()
	return found, errors.Join(err, l.Close())
}
