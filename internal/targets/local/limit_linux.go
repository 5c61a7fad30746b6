package local

import "github.com/knotmeter/knotmeter/internal/cgroup"

// A group is a control group.
type group = cgroup.Group

// newGroup makes a group that may use that many thousandths of a CPU.
func newGroup(milliCPUs int) (*group, error) { return cgroup.NewLimited(milliCPUs) }
