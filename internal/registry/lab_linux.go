package registry

import (
	"errors"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/cgroup"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// clean removes the control groups that are left where a lab's holder itself was killed. Those of labs that run are
// locked. Another program's stay, which --all does not change.
func clean(how targets.Cleaning) ([]string, error) {
	return cgroup.Clean(func(dir string) bool { return how.Report(dir, "") }, func(dir string) {
		how.Found(targets.Leftover{Name: dir, Doubt: "a control group with a name like Knotmeter's, and without its mark"})
	})
}

// features tries what the kernel has, where sites are made.
func features() ([]lab.Finding, error) {
	l, err := lab.Start(labConfig())
	if err != nil {
		return nil, err
	}
	found, err := l.Features()
	return found, errors.Join(err, l.Close())
}
