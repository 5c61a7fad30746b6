package compute

import (
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/result"
)

// The windows of runs.
const (
	standard = 700 * time.Millisecond
	short    = 450 * time.Millisecond
)

// latencySets are the working sets of the curve of memory latency, from the L1 cache to memory.
var latencySets = []string{"16KiB", "256KiB", "4MiB", "32MiB", "256MiB"}

// suites returns the family's suites. Their primary cases are few, so that each can show a small difference.
func suites() []family.Suite {
	return []family.Suite{
		{Name: path, About: "processor, memory and kernel, on one CPU and on all, in about ten minutes for two targets",
			Duration: standard, Cases: full()},
		{Name: path + ":quick", About: "a cipher, a sort, memory, the kernel's entry and timers, in about two minutes",
			Duration: short, Cases: append(
				cases(result.Primary, "aes-256-gcm", "sort", "memory-latency:set=256MiB", "syscall"),
				cases(result.Exploratory, "matrix", "memory-copy", "memory-latency:set=16KiB", "page-fault",
					"context-switch", "timer", "sort:cpus=all")...)},
		{Name: path + ":cvm", About: "what confidential VMs pay for: pages, address translation, memory, interrupts",
			Duration: standard, Cases: append(
				cases(result.Primary, "page-fault", "memory-walk:pages=4KiB", "memory-latency:set=256MiB", "syscall",
					"context-switch", "futex-wake"),
				cases(result.Exploratory, "memory-walk:pages=huge", "memory-copy", "memory-copy:cpus=all", "timer",
					"process-start", "aes-256-gcm", "memory-latency:set=16KiB")...)},
	}
}

// full returns the cases of the full suite: every kind on one CPU, and those that share something on all CPUs.
func full() []family.Case {
	list := cases(result.Primary, "aes-256-gcm", "sort", "memory-copy", "memory-latency:set=256MiB", "page-fault",
		"syscall")
	var rest []string
	for _, k := range kinds {
		switch {
		case k.byOthers:
		case k.name == MemoryLatency:
			for _, set := range latencySets {
				rest = append(rest, string(k.name)+":set="+set)
			}
		case k.name == MemoryWalk:
			rest = append(rest, "memory-walk:pages=4KiB", "memory-walk:pages=huge")
		default:
			rest = append(rest, string(k.name))
		}
	}
	rest = append(rest, "aes-256-gcm:cpus=all", "sort:cpus=all", "sort:cpus=core", "matrix:cpus=all", "matrix:cpus=core",
		"memory-copy:cpus=all", "memory-triad:cpus=all", "page-fault:cpus=all", "syscall:cpus=all", "file-open:cpus=all")
	return family.Unique(append(list, cases(result.Exploratory, rest...)...))
}

func cases(role result.Role, names ...string) []family.Case {
	return family.Cases(role, func(name string) (family.Workload, error) { return Parse(name) }, names...)
}
