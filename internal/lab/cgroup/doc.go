// Package cgroup makes the control groups of the lab's sites and removes what is left of them. Nothing
// is limited by them: they are how eBPF programs are told which processes they are for.
//
// A group is a directory, and so the one thing of the lab that has a name outside and survives a
// killed holder. Therefore a living holder has its groups locked: whoever gets the lock may remove them.
package cgroup

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
)

// Prefix begins the name of every group that we make.
const Prefix = "knotmeter-"

const none = result.NotSupported("no cgroup v2 hierarchy is mounted here (mount -t cgroup2)")

// A mount is a mounted cgroup v2 hierarchy, or a part of it.
type mount struct {
	root  string // the group that is mounted
	point string // where
}

// findMount reads /proc/self/mountinfo (proc_pid_mountinfo(5)) up to the first cgroup v2 hierarchy.
func findMount(mountinfo io.Reader) (mount, error) {
	lines := bufio.NewScanner(mountinfo)
	for lines.Scan() {
		left, right, ok := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(left)
		if !ok || len(fields) < 5 || !strings.HasPrefix(right, "cgroup2 ") {
			continue
		}
		return mount{unescape(fields[3]), unescape(fields[4])}, nil
	}
	if err := lines.Err(); err != nil {
		return mount{}, fmt.Errorf("reading /proc/self/mountinfo: %w", err)
	}
	return mount{}, none
}

// unescape undoes the octal escapes of blanks and backslashes in mountinfo.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// own reads from /proc/self/cgroup (cgroups(7)) which group of the version 2 hierarchy the process is in.
func own(cgroups io.Reader) (string, error) {
	lines := bufio.NewScanner(cgroups)
	for lines.Scan() {
		if group, ok := strings.CutPrefix(lines.Text(), "0::"); ok {
			return group, nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("reading /proc/self/cgroup: %w", err)
	}
	return "", none
}

// dir is where a group is in the file system. Of a group outside of what is mounted, it is the mount itself.
func (m mount) dir(group string) string {
	root := strings.TrimSuffix(m.root, "/")
	rest, ok := strings.CutPrefix(group, root+"/")
	if !ok || strings.Contains(group, "..") {
		return m.point
	}
	return path.Join(m.point, rest)
}
