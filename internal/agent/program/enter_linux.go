package program

import (
	"errors"

	"github.com/knotmeter/knotmeter/internal/cgroup"
)

// enterGroup becomes another command in a control group.
func enterGroup(args []string) error {
	if len(args) == 0 {
		return errors.New("which control group?")
	}
	return cgroup.Enter(args[0], args[1:])
}
