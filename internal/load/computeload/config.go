// Package computeload runs computations, memory accesses and requests to the operating system on chosen CPUs, and
// counts them: the agent passes it a [Config] and forwards its [Report].
//
// Each CPU has a thread of its own, which is pinned to it and repeats one loop in batches of about a millisecond, so
// that reading the clock costs nothing. Rates are over the exact times of the first and the last reading. Afterwards
// each loop proves its result: one that computes nothing is an error, not a fast one.
package computeload

import (
	"time"

	"github.com/knotmeter/knotmeter/internal/machine"
)

// The agent's requests.
const (
	Verb        = "compute"         // runs a loop: the body is a Config, the result a Report
	ReadingVerb = "compute-reading" // reads what CPUs have done so far: no body, the result is a Reading
)

// A Config describes a run.
type Config struct {
	Loop string `json:"loop"` // one of [Loops]
	// CPUs is how many CPUs are used at the same time; 0: all that the process may use. Core asks for all hardware threads
	// of one core instead.
	CPUs  int    `json:"cpus,omitempty"`
	Core  bool   `json:"core,omitempty"`
	Set   int    `json:"set,omitempty"`   // bytes of the working set of each thread
	Pages string `json:"pages,omitempty"` // [SmallPages], [HugePages] or empty: huge pages if the kernel gives them
	// Alone is how long one CPU is measured before all are, if there are several, ns; 0: not at all.
	Alone  time.Duration `json:"alone,omitempty"`
	Warmup time.Duration `json:"warmup"` // ns
	Window time.Duration `json:"window"` // ns
	Seed   uint64        `json:"seed,omitempty"`
	// Program is the command line of a program that ends at once, with status 0. Only the loop process-start needs it.
	Program []string `json:"-"`
}

// Pages of a working set.
const (
	SmallPages = "4KiB"
	HugePages  = "huge"
)

// Limits of a run.
const (
	Step      = 100 * time.Millisecond // length of a step of a series
	minWarmup = 20 * time.Millisecond  // to learn how many operations a batch takes
	maxWindow = 10 * time.Minute
	maxSet    = 1 << 30 // bytes
	maxCPUs   = 4096
	smallPage = 4 << 10 // bytes
)

// A Report holds the results of a run. Times are in seconds unless a comment says otherwise.
type Report struct {
	Version string `json:"version"`
	// Unsupported is the reason why this machine cannot carry out the run; then nothing else is set.
	Unsupported string `json:"unsupported,omitempty"`
	// Wrong describes a result of a loop that was not right; empty: all were.
	Wrong string `json:"wrong,omitempty"`

	Threads []Thread  `json:"threads"`
	Alone   *Thread   `json:"alone,omitempty"`   // the first of them, when only it ran
	Steps   []float64 `json:"steps,omitempty"`   // what all threads counted in each Step of the window
	Latency string    `json:"latency,omitempty"` // of single operations in ns, as an HdrHistogram V2
	Left    uint64    `json:"left"`              // operations of the warm-up, which are left out
	// Huge is the share of the working sets that is in huge pages; -1: unknown, or there are no working sets.
	Huge float64 `json:"huge"`

	CPUs []UsedCPU `json:"cpus"`
	// Machine holds the times of the used CPUs in the window, by mode.
	Machine   machine.CPUTimes `json:"machine"`
	Throttled int64            `json:"throttled"` // periods in which the agent's control group had used up its quota
}

// A Reading holds what CPUs have done so far, of those that the agent may use.
type Reading struct {
	CPUs      []CPUState `json:"cpus"`
	Throttled int64      `json:"throttled"` // periods in which the agent's control group had used up its quota
}

// A CPUState is the state of a CPU.
type CPUState struct {
	Number    int              `json:"number"`
	Frequency float64          `json:"frequency"` // Hz; 0: unknown
	Times     machine.CPUTimes `json:"times"`     // since boot
}

// Since returns the times of the CPUs since an earlier reading, by mode. CPUs that only one of the two has do not
// count.
func (r Reading) Since(earlier Reading) (sum machine.CPUTimes) {
	before := map[int]machine.CPUTimes{}
	for _, cpu := range earlier.CPUs {
		before[cpu.Number] = cpu.Times
	}
	for _, cpu := range r.CPUs {
		if from, known := before[cpu.Number]; known {
			for mode, seconds := range cpu.Times.Since(from) {
				sum[mode] += seconds
			}
		}
	}
	return sum
}

// A Thread holds what one thread did in a window.
type Thread struct {
	CPU        int     `json:"cpu"`
	Operations uint64  `json:"operations"`
	Counted    float64 `json:"counted"` // what the metric counts, such as bytes
	Elapsed    float64 `json:"elapsed"` // from the first to the last reading of the clock, without what is set aside
	CPUTime    float64 `json:"cpu_time"`
	Wall       float64 `json:"wall"` // from the first to the last reading
	// Voluntary and Involuntary count context switches: the thread waited, or others wanted its CPU.
	Voluntary   int64 `json:"voluntary"`
	Involuntary int64 `json:"involuntary"`
}

// Rate returns what the thread counted per second; 0 if it did nothing.
func (t Thread) Rate() float64 {
	if t.Elapsed <= 0 {
		return 0
	}
	return t.Counted / t.Elapsed
}

// A UsedCPU describes a CPU of a run.
type UsedCPU struct {
	machine.CPU
	// Before and After are its frequencies in Hz at both ends of the window; 0: unknown.
	Before float64 `json:"before,omitempty"`
	After  float64 `json:"after,omitempty"`
}
