package machine

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Throttled returns in how many periods the control group of this process (version 1 or 2) used up its CPU quota since
// it was made; 0 if it has no quota.
func Throttled() int64 {
	stat, _ := readGroupFile("cpu", "cpu.stat")
	return parseThrottled(stat)
}

// readGroupFile reads a file of this process's control group (version 1 or 2) in the hierarchy of a controller; ok is
// false if there is none.
func readGroupFile(controller string, names ...string) (text string, ok bool) {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for _, root := range cgroupRoots(parts[1], controller) {
			// In a container the root of the mount is the container's own group.
			for _, dir := range []string{filepath.Join(root, parts[2]), root} {
				for _, name := range names {
					if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
						return string(text), true
					}
				}
			}
		}
	}
	return "", false
}

// cgroupRoots returns where the hierarchy with these controllers may be mounted, or nil if it does not have the wanted
// one.
func cgroupRoots(controllers, wanted string) []string {
	switch {
	case controllers == "":
		return []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}
	case slices.Contains(strings.Split(controllers, ","), wanted):
		return []string{filepath.Join("/sys/fs/cgroup", controllers), filepath.Join("/sys/fs/cgroup", wanted)}
	}
	return nil
}

// parseThrottled returns nr_throttled of a control group's cpu.stat, or 0 if there is none.
func parseThrottled(text string) int64 {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "nr_throttled "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			return max(n, 0)
		}
	}
	return 0
}
