package compute

import (
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

const (
	// stealAtMost is the largest share of the CPUs' time that the hypervisor may take.
	stealAtMost = 0.1
	// stealRemarkable is the share from which readers are told, as for network runs.
	stealRemarkable = 0.02
	// tick is the unit in seconds in which the kernel counts stolen time (USER_HZ). One may belong to the time before the
	// window, which is a tenth of the shortest.
	tick = 0.01
)

// A Disturbance is what kept a run from CPUs that it wanted to use.
type Disturbance struct {
	Throttled int64   // periods in which the control group of the run had used up its quota
	Stolen    float64 // share of the CPUs' time that the hypervisor gave to other guests
}

// Throttled is the metric of the periods in which a run had used up its quota. Every run has it.
var Throttled = metric.OfCounter(metric.CPUThrottled)

// Judge adds the metric Throttled to a run, refuses the run if it was disturbed too much, and adds a warning if it was
// disturbed a little. A run that was throttled by a limit of the user's, which is empty if there is none, counts with a
// warning.
func (d Disturbance) Judge(b *family.Builder, cpuLimit string) {
	b.Add(Throttled, float64(d.Throttled))
	switch {
	case d.Throttled > 0 && cpuLimit != "":
		b.Warn(result.Throttled, "the CPU was throttled %d times by its limit of %s, which was asked for", d.Throttled,
			cpuLimit)
	case d.Throttled > 0:
		b.Refuse(result.Throttled, "the CPU was throttled by its cgroup %d times", d.Throttled)
	}
	switch certain := d.Stolen - tick/b.Window; {
	case certain > stealAtMost:
		b.Refuse(result.CPUStolen, "the hypervisor took %.1f %% of the CPUs' time away", d.Stolen*100)
	case certain > stealRemarkable:
		b.Warn(result.CPUStolen, "the hypervisor took %.1f %% of the CPUs' time away", d.Stolen*100)
	}
}
