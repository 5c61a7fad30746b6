package loops

import (
	"github.com/knotmeter/knotmeter/internal/family/compute"
	"github.com/knotmeter/knotmeter/internal/machine"
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

// gates makes the run invalid for each reason why it must not count.
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
}

// stolen returns the share of the used CPUs' time that the hypervisor took.
func (b *builder) stolen() float64 { return b.Report.Machine.Share(machine.Steal) }

// warnings adds what a reader should know about a valid run.
func (b *builder) warnings() {
	stolen := b.stolen()
	var used, wall float64
	preempted := int64(0)
	for _, t := range b.Report.Threads {
		used, wall, preempted = used+t.CPUTime, wall+t.Wall, preempted+t.Involuntary
	}
	// A thread that sleeps on its own is not kept from its CPU.
	if others := 1 - used/max(wall, 1e-9); b.Workload.Busy() && b.Report.Throttled == 0 && preempted > 0 &&
		others > othersRemarkable+stolen {
		b.Warn(result.CPUShared, "other programs had the CPUs of the run for %.1f %% of its window", (others-stolen)*100)
	}
}
