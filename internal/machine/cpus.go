package machine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseCPUs parses a list of CPUs in the kernel's format: "0-3,8".
func ParseCPUs(text string) ([]int, error) {
	var list []int
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.ParseUint(from, 10, 16)
		last := first
		if err == nil && isRange {
			last, err = strconv.ParseUint(to, 10, 16)
		}
		if err != nil || last < first {
			return nil, fmt.Errorf("%q is no list of CPUs", text)
		}
		for cpu := first; cpu <= last; cpu++ {
			list = append(list, int(cpu))
		}
	}
	return list, nil
}

// A CPU is a hardware thread that this process may use.
type CPU struct {
	Number int
	// Siblings are the numbers of all hardware threads of its core, itself among them, ascending. A core whose threads are
	// not known has one.
	Siblings []int
	Node     int // NUMA node; -1: not known
}

// FormatCPUs returns the numbers of CPUs as text: "0,1,4".
func FormatCPUs(cpus []int) string {
	var text []string
	for _, cpu := range slices.Sorted(slices.Values(cpus)) {
		text = append(text, strconv.Itoa(cpu))
	}
	return strings.Join(text, ",")
}
