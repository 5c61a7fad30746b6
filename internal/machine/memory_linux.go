package machine

import (
	"os"
	"strconv"
	"strings"
)

// AvailableMemory returns how many bytes this process may use in addition, by the machine's available memory and the
// limit of its control group; 0 if neither is known.
func AvailableMemory() float64 {
	meminfo, _ := os.ReadFile("/proc/meminfo")
	limit, _ := readGroupFile("memory", "memory.max", "memory.limit_in_bytes")
	usage, _ := readGroupFile("memory", "memory.current", "memory.usage_in_bytes")
	return availableMemory(meminfo, limit, usage)
}

// availableMemory evaluates the text of /proc/meminfo, and the limit and the usage of a control group, which may be
// empty.
func availableMemory(meminfo []byte, limit, usage string) float64 {
	text, _ := strings.CutSuffix(field(meminfo, "MemAvailable"), " kB")
	kib, _ := strconv.ParseFloat(text, 64) // 0 without one
	free := kib * 1024
	most, err := strconv.ParseFloat(strings.TrimSpace(limit), 64)
	used, usageErr := strconv.ParseFloat(strings.TrimSpace(usage), 64)
	if err == nil && usageErr == nil && (free == 0 || most-used < free) { // without a limit, it is a word or very large
		free = max(most-used, 0)
	}
	return free
}
