package netload

import (
	"bufio"
	"io"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/machine"
)

// ParseMeminfo returns the bytes of memory in use according to /proc/meminfo: the total less the memory available to
// new programs without swapping. It returns 0 if the text lacks these values.
func ParseMeminfo(r io.Reader) float64 {
	kib := map[string]float64{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		if number, is := strings.CutSuffix(strings.TrimSpace(rest), " kB"); is {
			if n, err := strconv.ParseUint(number, 10, 53); err == nil {
				kib[name] = float64(n)
			}
		}
	}
	all, available := kib["MemTotal"], kib["MemAvailable"]
	if lines.Err() != nil || available <= 0 || available >= all {
		return 0
	}
	return (all - available) * 1024
}

// A Cost holds the CPU time and the memory that a run used on one machine, and the agent's part of the CPU time.
type Cost struct {
	Window  float64          `json:"window"`  // seconds between the two snapshots
	CPUs    int              `json:"cpus"`    // of the machine
	Machine machine.CPUTimes `json:"machine"` // CPU seconds by mode, all CPUs
	Busiest float64          `json:"busiest"` // share of the window that the busiest CPU was busy
	Hottest int              `json:"hottest"` // number of that CPU
	Softest float64          `json:"softest"` // largest share of the window that any CPU spent in soft interrupts
	Idle    float64          `json:"idle"`    // CPUs that were busy before the agent's first run

	Memory     float64 `json:"memory,omitempty"`      // bytes in use, the larger of both snapshots; 0: not known
	IdleMemory float64 `json:"idle_memory,omitempty"` // the same before the run's connections were opened

	AgentUser   float64 `json:"agent_user"` // CPU seconds of the agent's process
	AgentSystem float64 `json:"agent_system"`
	Voluntary   int64   `json:"voluntary"` // context switches of the agent
	Involuntary int64   `json:"involuntary"`
	Throttled   int64   `json:"throttled"` // periods in which the agent's cgroup had used up its quota
}

// Used returns the machine's busy CPU seconds of the window, less those of an idle machine.
func (c Cost) Used() float64 { return max(c.Machine.Busy()-c.Idle*c.Window, 0) }

// setTimes sets the CPU times between two readings, and which CPU was busiest. Window must be set.
func (c *Cost) setTimes(before, after machine.CPUStat) {
	for cpu, t := range after {
		d := t.Since(before[cpu])
		for i := range d {
			c.Machine[i] += d[i]
		}
		c.CPUs++
		if c.Window > 0 {
			c.Softest = max(c.Softest, min(d[machine.SoftIRQ]/c.Window, 1))
			if share := min(d.Busy()/c.Window, 1); share > c.Busiest || c.CPUs == 1 {
				c.Busiest, c.Hottest = share, cpu
			}
		}
	}
}
