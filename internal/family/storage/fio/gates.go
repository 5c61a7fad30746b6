package fio

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Limits of the checks of a run.
const (
	shortWindow = 0.95 // of the window
	deepEnough  = 0.90 // of the submissions at the requested depth
	cpuBound    = 0.95 // of a CPU in each thread
	inSubmit    = 0.50 // of the latency; above it submission is the bottleneck
	uncounted   = 0.01 // of the operations; above it those that fio leaves out at the end matter
)

// gates makes the run invalid for each reason why it must not count.
func (m *measurement) gates(j job, window time.Duration, g Group, notes string) {
	o := g.Jobs[0]
	if o.Error != 0 {
		m.Refuse(result.JobFailed, "fio says that the job failed with error %d", o.Error)
	}
	// For a side without operations, fio 3.33 counts the syncs of the other as dropped.
	for _, s := range []Side{o.Read, o.Write} {
		if lost := s.Short + s.Dropped; s.moved() && lost > 0 {
			m.Refuse(result.OperationsLost, "%.0f operations were short or dropped", lost)
		}
	}
	if m.Window < shortWindow*window.Seconds() {
		m.Refuse(result.ShortWindow, "fio measured %.3g s of %g s", m.Window, window.Seconds())
	}
	if strings.Contains(notes, "Laying out IO file") {
		m.Refuse(result.FileLaidOut, "the file did not have the size that was asked for: fio made it anew, and what is "+
			"read was not written before")
	}
	if share, known := atDepth(o.Levels, j.depth); known && !j.throttled && j.depth > 1 && share < deepEnough {
		m.Refuse(result.ShallowQueue, "the queue depth of %d was reached in %s of the submissions only",
			j.depth, unit.Format(share, unit.Ratio))
	}
	// With mapped memory or a rate a thread may spin; otherwise a thread that uses a whole CPU is limited by it.
	if used := (o.User + o.System) / 100; !j.throttled && j.engine != "mmap" && used >= cpuBound {
		m.Refuse(result.CPULimit, "the client's CPU was the limit and not the volume: each of fio's threads used %s of a "+
			"CPU; more jobs (numjobs) or larger blocks leave room", unit.Format(used, unit.Ratio))
	}
}

// atDepth returns the share of the submissions with at least depth operations in flight, to the resolution of fio's
// powers of two; known is false without data.
func atDepth(levels map[string]float64, depth int) (share float64, known bool) {
	for _, key := range slices.Sorted(maps.Keys(levels)) {
		from, err := strconv.Atoi(strings.TrimPrefix(key, ">="))
		if err != nil || levels[key] < 0 {
			continue
		}
		known = known || levels[key] > 0
		if 2*from > min(depth, 64) {
			share += levels[key] / 100
		}
	}
	return share, known
}

// warnings adds what a reader should know about a valid run.
func (m *measurement) warnings(j job, g Group) {
	if !j.direct && !j.syncs {
		m.Warn(result.PageCache, "the job goes through the page cache (direct=1 goes around it), so that a part of what "+
			"was measured is memory")
	}
	if share := j.leftOut(g); share > uncounted {
		m.Warn(result.Uncounted, "fio does not count what is under way when its window ends, which may be %s of what the "+
			"volume did; a longer window or a smaller queue depth makes that less", unit.Format(min(share, 1), unit.Ratio))
	}
	for _, side := range []struct {
		of   Side
		name string
	}{{g.Jobs[0].Read, "reads"}, {g.Jobs[0].Write, "writes"}} {
		share := side.of.Submission.Mean / max(side.of.Whole.Mean, 1)
		if j.depth > 1 && j.engine == "libaio" && share > inSubmit {
			m.Warn(result.SlowSubmission, "%s of the latency of %s is in their submission, which waits where the kernel "+
				"or the device takes no more at once: the queue behind it is shorter than %d",
				unit.Format(min(share, 1), unit.Ratio), side.name, j.depth)
		}
	}
}

// leftOut returns the largest number of operations that fio may leave out at the end of its window, those in flight, as
// a share of the counted ones.
func (j job) leftOut(g Group) float64 {
	counted := 0.0
	for _, o := range g.Jobs {
		counted += o.Read.Total + o.Write.Total + o.Trim.Total
	}
	if counted == 0 {
		return 0
	}
	return float64(j.depth*max(j.threads, 1)) / counted
}
