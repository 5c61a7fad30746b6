package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// KillMarked kills the processes with a [Mark] of an experiment, of any run of the program, and waits until they have
// ended. A process that left its session stays: it is a service that the command meant to start. The error names the
// processes that remain when ctx ends.
func KillMarked(ctx context.Context, experiment string) error {
	for {
		left, err := marked(experiment)
		if err != nil || len(left) == 0 {
			return err
		}
		for _, pid := range left {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("end the process %d, which a command started: %w", pid, err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the processes %v, which a command started, do not end although they were killed; "+
				"wait for their end, or restart the machine", left)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// marked returns the processes with a mark of an experiment that are still in the session of the mark. Those of other
// users cannot be read, and are none of them.
func marked(experiment string) (pids []int, err error) {
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, err
	}
	prefix := []byte(markVariable + "=" + experiment + "/")
	for _, file := range environs {
		environ, _ := os.ReadFile(file) // it is empty if the process has ended
		for variable := range bytes.SplitSeq(environ, []byte{0}) {
			session, is := bytes.CutPrefix(variable, prefix)
			if dir := filepath.Dir(file); is && bytes.Equal(session, sessionOf(dir)) {
				pid, err := strconv.Atoi(filepath.Base(dir))
				if err != nil {
					return nil, err
				}
				pids = append(pids, pid)
			}
		}
	}
	return pids, nil
}

// sessionOf returns the ID of the session of a process, given its directory in /proc; nil if it has ended.
func sessionOf(dir string) []byte {
	stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
	// Its name in parentheses may contain anything. The fields after it are state, parent, process group and session:
	// proc_pid_stat(5).
	if fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]); len(fields) > 3 {
		return fields[3]
	}
	return nil
}
