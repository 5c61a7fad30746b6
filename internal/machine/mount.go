package machine

import (
	"regexp"
	"strconv"
	"strings"
)

// A Mount is a mounted file system, or a part of one.
type Mount struct {
	Root   string // directory within the file system that is mounted
	Point  string // mount point
	Kind   string // file system type: ext4, cgroup2
	Source string // such as a device
	// Options are those of the mount, then "; " and those of the file system if they differ.
	Options string
}

// Mounts parses /proc/self/mountinfo (proc_pid_mountinfo(5)). Lines that it cannot parse are left out. A line is
//
//	36 35 98:0 /root /point rw,noatime master:1 - ext3 /dev/root rw,errors=continue
func Mounts(mountinfo string) []Mount {
	var mounts []Mount
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		b, a := strings.Fields(before), strings.Fields(after)
		if !ok || len(b) < 6 || len(a) < 2 {
			continue
		}
		m := Mount{Root: unescape(b[3]), Point: unescape(b[4]), Kind: a[0], Source: unescape(a[1]), Options: b[5]}
		if len(a) > 2 && a[2] != b[5] {
			m.Options += "; " + a[2]
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// unescape replaces octal escapes, such as the kernel's \040 for a space.
func unescape(text string) string {
	return octal.ReplaceAllStringFunc(text, func(escape string) string {
		c, _ := strconv.ParseUint(escape[1:], 8, 8)
		return string([]byte{byte(c)})
	})
}

var octal = regexp.MustCompile(`\\[0-3][0-7]{2}`)
