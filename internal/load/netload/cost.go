package netload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A Mode is a CPU state, in the order of /proc/stat.
type Mode int

// The modes. Guest time is part of user time already.
const (
	User Mode = iota
	Nice
	System
	Idle
	IOWait
	IRQ
	SoftIRQ
	Steal
	modes // number of modes
)

// ticksPerSecond is USER_HZ, the unit of /proc/stat: 100 on every architecture that Linux supports today.
const ticksPerSecond = 100.0

// Times holds CPU seconds by mode.
type Times [modes]float64

// Busy returns the time that was neither idle nor waiting for I/O. Stolen time counts, since it was not available.
func (t Times) Busy() float64 {
	return t[User] + t[Nice] + t[System] + t[IRQ] + t[SoftIRQ] + t[Steal]
}

// Sum returns the time in all modes.
func (t Times) Sum() (sum float64) {
	for _, v := range t {
		sum += v
	}
	return sum
}

func (t Times) minus(o Times) Times {
	for i := range t {
		t[i] = max(t[i]-o[i], 0)
	}
	return t
}

// Stat holds the contents of /proc/stat: each CPU's times since boot, by the CPU's number.
type Stat map[int]Times

// errStat is wrapped by every error about the text of /proc/stat.
var errStat = errors.New("not the text of /proc/stat")

// ParseStat reads the lines of /proc/stat about single CPUs.
func ParseStat(r io.Reader) (Stat, error) {
	stat := Stat{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || len(fields[0]) < 4 || !strings.HasPrefix(fields[0], "cpu") {
			continue
		}
		cpu, err := strconv.ParseUint(fields[0][3:], 10, 16)
		if err != nil || len(fields) < int(modes)+1 {
			return nil, fmt.Errorf("%w: line %q", errStat, lines.Text())
		}
		var t Times
		for i := range t {
			n, err := strconv.ParseUint(fields[i+1], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%w: line %q", errStat, lines.Text())
			}
			t[i] = float64(n) / ticksPerSecond
		}
		stat[int(cpu)] = t
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", errStat, err)
	}
	if len(stat) == 0 {
		return nil, fmt.Errorf("%w: no line about a CPU", errStat)
	}
	return stat, nil
}

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
	Window  float64 `json:"window"`  // seconds between the two snapshots
	CPUs    int     `json:"cpus"`    // of the machine
	Machine Times   `json:"machine"` // CPU seconds by mode, all CPUs
	Busiest float64 `json:"busiest"` // share of the window that the busiest CPU was busy
	Hottest int     `json:"hottest"` // number of that CPU
	Softest float64 `json:"softest"` // largest share of the window that any CPU spent in soft interrupts
	Idle    float64 `json:"idle"`    // CPUs that were busy before the agent's first run

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
func (c *Cost) setTimes(before, after Stat) {
	for cpu, t := range after {
		d := t.minus(before[cpu])
		for i := range d {
			c.Machine[i] += d[i]
		}
		c.CPUs++
		if c.Window > 0 {
			c.Softest = max(c.Softest, min(d[SoftIRQ]/c.Window, 1))
			if share := min(d.Busy()/c.Window, 1); share > c.Busiest || c.CPUs == 1 {
				c.Busiest, c.Hottest = share, cpu
			}
		}
	}
}
