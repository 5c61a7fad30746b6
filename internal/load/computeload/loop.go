//go:build linux

package computeload

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/knotmeter/knotmeter/internal/load/netload"
)

// A loop repeats one operation on one thread. All its methods are called by that thread.
type loop interface {
	// run carries out n operations and records the latency of each in ns, if the loop has single operations and latencies
	// is not nil.
	run(n int, latencies *netload.Histogram)
	// check returns an error if a result of the operations since the start was wrong, or one of them failed.
	check() error
}

// A closer is a loop that has to release something.
type closer interface{ close() }

// A definition holds the properties of a loop.
type definition struct {
	start func(place) (loop, error)
	// counts is what one operation adds to the metric: bytes, floating-point operations, or 1.
	counts float64
	memory bool // it has a working set
	// collects is set if it allocates memory, so that the garbage collector works too and is measured with it.
	collects bool
	// least is the smallest number of CPUs; 0: one. If pairs is set, one loop uses two CPUs, on two threads.
	least int
	pairs bool
}

// A place is where a loop runs, and with what.
type place struct {
	cpus  []int // the thread's, and if the loop takes pairs the other thread's
	set   int
	pages string
	seed  uint64
	// program is that of [Config].
	program []string
	// aside is where the loop adds the time that it spent on something else and that does not count, in ns.
	aside *int64
	// word is shared by all threads of a run.
	word *atomic.Uint64
	// huge is called with the share of a working set that is in huge pages.
	huge func(share float64)
}

// loops holds all loops by name.
var loops = map[string]definition{
	"aes-256-gcm":       {start: startCipher, counts: message},
	"sha-256":           {start: startHash, counts: message},
	"ecdsa-p256-sign":   {start: startSign, counts: 1},
	"ecdsa-p256-verify": {start: startVerify, counts: 1},
	"deflate":           {start: startDeflate, counts: textSize},
	"sort":              {start: startSort, counts: 1},
	"matrix":            {start: startMatrix, counts: 2 * matrixSize * matrixSize * matrixSize},
	"json":              {start: startJSON, counts: 1, collects: true},

	"memory-copy":    {start: startCopy, counts: 2 * chunk, memory: true},
	"memory-triad":   {start: startTriad, counts: 3 * chunk, memory: true},
	"memory-latency": {start: startLatency, counts: 1, memory: true},
	"memory-walk":    {start: startWalk, counts: 1, memory: true},
	"page-fault":     {start: startFaults, counts: 1, memory: true},

	"syscall":          {start: startSyscall, counts: 1},
	"context-switch":   {start: startSwitch, counts: 1},
	"futex-wake":       {start: startWake, counts: 1, least: 2, pairs: true},
	"timer":            {start: startTimer, counts: 1},
	"process-start":    {start: startProcess, counts: 1},
	"file-open":        {start: startOpen, counts: 1},
	"compare-and-swap": {start: startSwap, counts: 1, least: 2},
}

// Loops returns the names of all loops, sorted.
func Loops() []string { return slices.Sorted(maps.Keys(loops)) }

// batchTime is the length of a batch of operations.
const batchTime = int64(time.Millisecond)

// nextBatch returns the number of operations for a batch, of the last one's number and time in ns. It grows at most
// tenfold, since the first operations are slower.
func nextBatch(n int, took int64) int {
	const most = 1 << 30
	want := float64(n) * float64(batchTime) / float64(max(took, 1))
	return int(min(max(want, 1), 10*float64(n), most))
}

// A window counts the operations of one thread between two times, in ns since the start of the run.
type window struct {
	begin, end int64
	steps      []float64
	counts     float64 // of an operation
	thread     Thread
	aside      int64
	first      int64 // reading at which it began; 0: not yet
	last       int64
}

// newWindow returns a window of a loop with an operation's counts.
func newWindow(begin, end int64, counts float64) *window {
	step := int64(Step)
	return &window{begin: begin, end: end, counts: counts, steps: make([]float64, (end-begin+step-1)/step)}
}

// add counts a batch of n operations that began and ended at two readings. Batches that began before the window are not
// counted; the last one ends after it, and is.
func (w *window) add(n int, from, to, aside int64) {
	if from < w.begin {
		return
	}
	if w.first == 0 {
		w.first = from
	}
	w.last, w.aside = to, w.aside+aside
	w.thread.Operations += uint64(n)
	w.thread.Counted += float64(n) * w.counts
	if i := (to - w.begin) / int64(Step); i >= 0 && i < int64(len(w.steps)) {
		w.steps[i] += float64(n) * w.counts
	}
}

// done returns what the thread did.
func (w *window) done() Thread {
	t := w.thread
	t.Wall = float64(w.last-w.first) / 1e9
	t.Elapsed = float64(w.last-w.first-w.aside) / 1e9
	return t
}

// sum adds the steps of the windows of all threads.
func sum(all []*window) []float64 {
	if len(all) == 0 {
		return nil
	}
	total := make([]float64, len(all[0].steps))
	for _, w := range all {
		for i, n := range w.steps {
			total[i] += n
		}
	}
	return total
}
