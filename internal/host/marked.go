//go:build unix

package host

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// markVariable is the environment variable that marks the processes of an experiment's commands.
const markVariable = "KNOTMETER_SWITCH"

// Mark returns the environment variable, NAME=VALUE, that marks a command and what it starts for [KillMarked]. It has
// the session of this program, which a command's processes are in, until they leave it, as by setsid(1).
func Mark(experiment string) string {
	sid, err := unix.Getsid(0)
	if err != nil {
		sid = 0 // never the session of a process
	}
	return fmt.Sprintf("%s=%s/%d", markVariable, experiment, sid)
}
