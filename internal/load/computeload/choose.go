//go:build linux

package computeload

import (
	"errors"
	"fmt"

	"github.com/knotmeter/knotmeter/internal/machine"
)

// errConfig is wrapped by every error about a Config.
var errConfig = errors.New("invalid computation")

func (c Config) validate() error {
	switch {
	case loops[c.Loop].start == nil:
		return fmt.Errorf("%w: there is no loop %q", errConfig, c.Loop)
	case c.CPUs < 0 || c.CPUs > maxCPUs:
		return fmt.Errorf("%w: %d CPUs", errConfig, c.CPUs)
	case c.Set < 0 || c.Set > maxSet || (c.Set >= smallPage) != loops[c.Loop].memory:
		return fmt.Errorf("%w: %s with a working set of %d bytes", errConfig, c.Loop, c.Set)
	case c.Pages != "" && c.Pages != SmallPages && c.Pages != HugePages:
		return fmt.Errorf("%w: pages %q", errConfig, c.Pages)
	case c.Window <= 0 || min(c.Warmup, c.Alone) < 0 || max(c.Window, c.Warmup, c.Alone) > maxWindow:
		return fmt.Errorf("%w: a window of %v after %v and %v", errConfig, c.Window, c.Alone, c.Warmup)
	}
	return nil
}

// choose returns the CPUs of a run, the first ones of those that may be used: of different cores as long as there are
// any. reason is why there are not as many as wanted.
func choose(allowed []machine.CPU, c Config) (chosen []machine.CPU, reason string) {
	if len(allowed) == 0 {
		return nil, "the CPUs that the agent may use are unknown"
	}
	cores := coresOf(allowed)
	if c.Core {
		for _, core := range cores {
			if len(core) > 1 {
				return core, ""
			}
		}
		return nil, "no core has two hardware threads that the agent may use: SMT is off, or the hypervisor does not show it"
	}
	for thread := 0; len(chosen) < len(allowed); thread++ {
		for _, core := range cores {
			if thread < len(core) {
				chosen = append(chosen, core[thread])
			}
		}
	}
	want := c.CPUs
	if want == 0 {
		want = len(chosen)
	}
	if least := loops[c.Loop].least; max(want, least) > len(chosen) {
		return nil, fmt.Sprintf("it takes %d CPUs, and the agent may use %d", max(want, least), len(chosen))
	} else if want < least {
		return nil, fmt.Sprintf("it takes at least %d CPUs", least)
	}
	return chosen[:want], ""
}

// coresOf groups CPUs by their cores, in their order.
func coresOf(cpus []machine.CPU) [][]machine.CPU {
	var cores [][]machine.CPU
	at := map[int]int{} // index of a core by the number of its first thread
	for _, cpu := range cpus {
		i, known := at[cpu.Siblings[0]]
		if !known {
			i = len(cores)
			at[cpu.Siblings[0]], cores = i, append(cores, nil)
		}
		cores[i] = append(cores[i], cpu)
	}
	return cores
}
