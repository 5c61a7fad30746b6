package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// AllowedCPUs returns the numbers of the CPUs that the calling thread may use, ascending.
func AllowedCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("read the CPUs that this process may use: %w", err)
	}
	var allowed []int
	for i := range len(set) * strconv.IntSize {
		if set.IsSet(i) {
			allowed = append(allowed, i)
		}
	}
	return allowed, nil
}

// InspectCPU returns what the kernel shows of a CPU.
func InspectCPU(number int) CPU {
	dir := fmt.Sprintf("/sys/devices/system/cpu/cpu%d", number)
	cpu := CPU{Number: number, Siblings: []int{number}, Node: -1}
	if text, err := os.ReadFile(dir + "/topology/thread_siblings_list"); err == nil {
		if list, err := ParseCPUs(string(text)); err == nil {
			cpu.Siblings = list
		}
	}
	if nodes, _ := filepath.Glob(dir + "/node[0-9]*"); len(nodes) > 0 {
		if n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(nodes[0]), "node")); err == nil {
			cpu.Node = n
		}
	}
	return cpu
}

// Frequency returns the frequency of a CPU in Hz, as its driver or else /proc/cpuinfo shows it; 0 if neither does.
// Virtual machines often show a constant.
func Frequency(number int) float64 {
	const khz, mhz = 1e3, 1e6
	file := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", number)
	if text, err := os.ReadFile(file); err == nil {
		if f, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64); err == nil {
			return f * khz
		}
	}
	return mhz * frequencyOf(string(cpuinfo()), number)
}

// frequencyOf returns the frequency of a CPU in MHz according to /proc/cpuinfo; 0 if that has none.
func frequencyOf(cpuinfo string, number int) float64 {
	for part := range strings.SplitSeq(cpuinfo, "\n\n") {
		if field([]byte(part), "processor") == strconv.Itoa(number) {
			f, _ := strconv.ParseFloat(field([]byte(part), "cpu MHz"), 64) // 0 without one
			return f
		}
	}
	return 0
}
