package loops

import (
	"github.com/knotmeter/knotmeter/internal/family/compute"
	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Limits of the checks that make a run invalid or add a warning.
const (
	// shortWindow is the smallest ratio of the planned and the actual window, either way, as for network runs. The window
	// ends with a batch of a millisecond.
	shortWindow = 0.9
	// othersRemarkable is the share of the threads' time that other programs may have before readers are told: as much as
	// the smallest change that matters by default.
	othersRemarkable = 0.02
)

// gates makes the run invalid for each reason why it must not count, and adds what a reader should know about the CPUs.
func (b *builder) gates() {
	if b.Report.Wrong != "" {
		b.Refuse(result.WrongResult, "a result is wrong, so the speed of its computation means nothing: %s", b.Report.Wrong)
	}
	planned := b.run.Window.Seconds()
	for _, t := range b.Report.Threads {
		if t.Operations == 0 {
			b.Refuse(result.NothingDone, "no operation was completed in the window")
			return
		}
		if b.Report.Throttled == 0 && (t.Wall < planned*shortWindow || t.Wall > planned/shortWindow) {
			b.Refuse(result.ShortWindow, "the window of CPU %d was %.3f s long, not %.3f s", t.CPU, t.Wall, planned)
			break
		}
	}
	compute.Disturbance{Throttled: b.Report.Throttled, Stolen: b.stolen()}.Judge(b.Builder, b.CPULimit)
	if others, known := b.others(); known {
		b.Add(metric.CPUOthers, others)
		if others > othersRemarkable {
			b.Warn(result.CPUShared, "other programs had the CPUs of the run for %.1f %% of its window", others*100)
		}
	}
}

// stolen returns the share of the used CPUs' time that the hypervisor took.
func (b *builder) stolen() float64 { return b.Report.Machine.Share(machine.Steal) }

// others returns the share of the threads' time in which other programs of the machine had their CPUs. It is not known
// for threads that sleep on their own, or that their quota stopped.
func (b *builder) others() (share float64, known bool) {
	if !b.Workload.Busy() || b.Report.Throttled > 0 {
		return 0, false
	}
	var used, wall float64
	preempted := int64(0)
	for _, t := range b.Report.Threads {
		used, wall, preempted = used+t.CPUTime, wall+t.Wall, preempted+t.Involuntary
	}
	if wall == 0 || preempted == 0 {
		return 0, wall > 0
	}
	return max(1-used/wall-b.stolen(), 0), true
}
