package computeload

import (
	"bufio"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/machine"
)

// config returns a short run of a loop.
func config(loop string) Config {
	c := Config{Loop: loop, CPUs: max(1, loops[loop].least), Warmup: 20 * time.Millisecond, Window: 120 * time.Millisecond,
		Alone: 30 * time.Millisecond, Seed: 7, Program: []string{"/bin/true"}}
	if loops[loop].memory {
		c.Set = 16 << 20
	}
	if loop == "memory-walk" {
		c.Pages = SmallPages
	}
	return c
}

// do carries out a run, or skips the test where the machine cannot. On a busy machine a thread may have no CPU time in
// a short window; then do repeats the run with a longer one.
func do(t *testing.T, c Config) Report {
	t.Helper()
	for ; ; c.Window *= 4 {
		r, err := Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if r.Unsupported != "" {
			t.Skip(r.Unsupported)
		}
		idle := func(thread Thread) bool { return thread.Operations == 0 }
		if c.Window > 10*time.Second || !slices.ContainsFunc(r.Threads, idle) {
			return r
		}
	}
}

// TestLoops checks that every loop does something in its window, with right results, and that its counts agree.
func TestLoops(t *testing.T) {
	for _, loop := range Loops() {
		t.Run(loop, func(t *testing.T) {
			c := config(loop)
			r := do(t, c)
			var operations, counted float64
			for _, thread := range r.Threads {
				if thread.Operations == 0 || thread.Elapsed <= 0 || thread.Wall < thread.Elapsed || thread.CPUTime < 0 {
					t.Errorf("%+v", thread)
				}
				operations, counted = operations+float64(thread.Operations), counted+thread.Counted
			}
			if r.Wrong != "" || counted != operations*loops[loop].counts {
				t.Errorf("%q, %g operations counted as %g", r.Wrong, operations, counted)
			}
			latencies, err := netload.DecodeHistogram(r.Latency)
			if n := float64(latencies.Count()); err != nil || n > operations || n > 0 && n < operations/2 {
				t.Errorf("%g latencies of %g operations, %v", n, operations, err)
			}
			if (r.Huge >= 0) != (loops[loop].memory && loop != "page-fault") || len(r.CPUs) != c.CPUs {
				t.Errorf("%g in huge pages, on %+v", r.Huge, r.CPUs)
			}
			if several := loops[loop].least > 1 && !loops[loop].pairs; (r.Alone != nil) != several {
				t.Errorf("alone: %+v", r.Alone)
			}
		})
	}
}

// TestAllCPUs checks that all CPUs work at the same time, each thread on its own.
func TestAllCPUs(t *testing.T) {
	allowed, err := machine.AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	c := config("sort")
	c.CPUs = 0
	r := do(t, c)
	var used []int
	for _, thread := range r.Threads {
		used = append(used, thread.CPU)
	}
	slices.Sort(used)
	if !slices.Equal(used, allowed) || (r.Alone != nil) != (len(allowed) > 1) {
		t.Errorf("threads on %v of %v, alone %+v", used, allowed, r.Alone)
	}
}

// TestStep checks that loads beyond the caches take longer than those in the first one, by a factor.
func TestStep(t *testing.T) {
	mean := func(set int) float64 {
		c := config("memory-latency")
		c.Set = set
		thread := do(t, c).Threads[0]
		return thread.CPUTime / float64(thread.Operations) // other programs do not count
	}
	if small, large := mean(16<<10), mean(256<<20); large < 5*small {
		t.Errorf("a load of 16 KiB takes %.3g s of CPU time, one of 256 MiB %.3g s", small, large)
	}
}

// TestHugePages checks that pages of both sizes are what was asked for, or that the reason is given.
func TestHugePages(t *testing.T) {
	for pages, least := range map[string]float64{SmallPages: 0, HugePages: hugeEnough} {
		c := config("memory-walk")
		c.Pages, c.Set = pages, 64<<20
		r, err := Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if right := r.Huge >= least && (pages == HugePages || r.Huge == 0); !right && r.Unsupported == "" {
			t.Errorf("%s: %g in huge pages", pages, r.Huge)
		}
	}
}

func TestErrors(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no loop":      func(c *Config) { c.Loop = "guess" },
		"CPUs":         func(c *Config) { c.CPUs = -1 },
		"no window":    func(c *Config) { c.Window = 0 },
		"a set":        func(c *Config) { c.Set = 1 << 20 },
		"pages":        func(c *Config) { c.Pages = "1GiB" },
		"long warm-up": func(c *Config) { c.Warmup = time.Hour },
	} {
		c := config("sort")
		change(&c)
		if _, err := Run(t.Context(), c); !errors.Is(err, errConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := config("process-start")
	if c.Program = nil; !errors.Is(second(Run(t.Context(), c)), errConfig) {
		t.Error("a process without a program")
	}
	c.Program = []string{"/bin/false"}
	if r, err := Run(t.Context(), c); err != nil || !strings.Contains(r.Wrong, "status") {
		t.Errorf("a program that fails: %+v, %v", r, err)
	}
}

func second[A any](_ A, err error) error { return err }

func TestUnsupported(t *testing.T) {
	c := config("sort")
	c.CPUs = 4000
	if r, err := Run(t.Context(), c); err != nil || !strings.Contains(r.Unsupported, "takes 4000 CPUs") {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := config("context-switch")
	c.Window = time.Minute
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := Run(ctx, c); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestWrong checks that results that are not right are found.
func TestWrong(t *testing.T) {
	for name, spoil := range map[string]func(loop){
		"aes-256-gcm":      func(l loop) { l.(*cipherLoop).plain[100]++ },
		"sha-256":          func(l loop) { l.(*hashLoop).message[100]++ },
		"ecdsa-p256-sign":  func(l loop) { l.(*signLoop).hash[0]++ },
		"sort":             func(l loop) { l.(*sortLoop).sum++ },
		"matrix":           func(l loop) { l.(*matrixLoop).product[5][7]++ },
		"memory-copy":      func(l loop) { l.(*arrayLoop).a[0] = 5 },
		"memory-triad":     func(l loop) { l.(*arrayLoop).a[12] = 5 },
		"memory-latency":   func(l loop) { l.(*chaseLoop).steps++; l.run(1, nil) },
		"page-fault":       func(l loop) { l.(*faultLoop).touched += 1e6 },
		"syscall":          func(l loop) { l.(*syscallLoop).parent++; l.run(1, nil) },
		"context-switch":   func(l loop) { l.(*switchLoop).err = errConfig },
		"file-open":        func(l loop) { l.(*openLoop).path[1] = '?'; l.run(1, nil) },
		"compare-and-swap": func(l loop) { l.(*swapLoop).done++ },
	} {
		c := config(name)
		team := newTeam(c, loops[name], []machine.CPU{{Number: 0}})
		l, err := loops[name].start(place{cpus: []int{0}, set: c.Set, word: &team.word, aside: new(int64),
			huge: func(float64) {}})
		if err != nil {
			t.Fatal(err)
		}
		l.run(3, nil)
		if err := l.check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		spoil(l)
		if name == "aes-256-gcm" || name == "sha-256" {
			l.run(1, nil)
		}
		if l.check() == nil {
			t.Errorf("%s: a wrong result was not found", name)
		}
		if held, is := l.(closer); is {
			held.close()
		}
	}
}

func TestChoose(t *testing.T) {
	cpus := func(siblings ...[]int) (list []machine.CPU) {
		for _, s := range siblings {
			for _, n := range s {
				list = append(list, machine.CPU{Number: n, Siblings: s})
			}
		}
		slices.SortFunc(list, func(a, b machine.CPU) int { return a.Number - b.Number })
		return list
	}
	smt, single := cpus([]int{0, 2}, []int{1, 3}), cpus([]int{0}, []int{1})
	half := []machine.CPU{smt[1], smt[2], smt[3]} // without CPU 0
	for _, test := range []struct {
		name    string
		allowed []machine.CPU
		c       Config
		want    string // numbers, or a part of the reason
	}{
		{"one", smt, Config{Loop: "sort", CPUs: 1}, "0"},
		{"two cores", smt, Config{Loop: "sort", CPUs: 2}, "0,1"},
		{"three", smt, Config{Loop: "sort", CPUs: 3}, "0,1,2"},
		{"all", smt, Config{Loop: "sort"}, "0,1,2,3"},
		{"too many", smt, Config{Loop: "sort", CPUs: 5}, "it takes 5 CPUs, and the agent may use 4"},
		{"a core", smt, Config{Loop: "sort", Core: true}, "0,2"},
		{"the core that is whole", half, Config{Loop: "sort", Core: true}, "1,3"},
		{"no SMT", single, Config{Loop: "sort", Core: true}, "SMT is off"},
		{"a pair", single, Config{Loop: "futex-wake", CPUs: 2}, "0,1"},
		{"half a pair", single[:1], Config{Loop: "futex-wake", CPUs: 2}, "it takes 2 CPUs, and the agent may use 1"},
		{"all of one", single[:1], Config{Loop: "compare-and-swap"}, "it takes 2 CPUs"},
		{"unknown", nil, Config{Loop: "sort"}, "unknown"},
	} {
		chosen, reason := choose(test.allowed, test.c)
		var numbers []int
		for _, c := range chosen {
			numbers = append(numbers, c.Number)
		}
		got := machine.FormatCPUs(numbers) + reason
		if !strings.Contains(got, test.want) || (reason == "") != (len(chosen) > 0) {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}

// TestWindow checks that batches are counted that begin within a window, over the time of these batches.
func TestWindow(t *testing.T) {
	w := newWindow(1e9, 1.3e9, 10)
	w.add(5, 0.9e9, 1.01e9, 0) // began too early
	w.add(5, 1.01e9, 1.05e9, 0)
	w.add(5, 1.05e9, 1.25e9, 0.1e9)
	w.add(5, 1.25e9, 1.31e9, 0)
	got := w.done()
	if got.Operations != 15 || got.Counted != 150 || math.Abs(got.Elapsed-0.2) > 1e-9 || math.Abs(got.Wall-0.3) > 1e-9 ||
		math.Abs(got.Rate()-750) > 1e-6 || !slices.Equal(w.steps, []float64{50, 0, 50}) {
		t.Errorf("%+v, %v", got, w.steps)
	}
	if idle := newWindow(0, 1, 1).done(); idle.Rate() != 0 {
		t.Errorf("%+v", idle)
	}
}

func TestNextBatch(t *testing.T) {
	for _, c := range []struct {
		n    int
		took int64
		want int
	}{{1, 1e6, 1}, {1, 1000, 10}, {1000, 1e6, 1000}, {1000, 5e6, 200}, {1, 1e9, 1}, {1, 0, 10}} {
		if got := nextBatch(c.n, c.took); got != c.want {
			t.Errorf("after %d in %d ns: %d, want %d", c.n, c.took, got, c.want)
		}
	}
}

const smaps = `7f0000000000-7f0000400000 rw-p 00000000 00:00 0
Size:               4096 kB
AnonHugePages:      2048 kB
7f0000400000-7f0000800000 rw-p 00000000 00:00 0
AnonHugePages:      4096 kB
7fff00000000-7fff00001000 r-xp 00000000 00:00 0 [vdso]
AnonHugePages:         0 kB
`

func TestHugeBytes(t *testing.T) {
	for _, c := range []struct {
		begin, end, want uint64
		err              bool
	}{
		{0x7f0000000000, 0x7f0000400000, 2 << 20, false},
		{0x7f0000000000, 0x7f0000800000, 6 << 20, false},
		{0x7f0000400000, 0x7f0000600000, 2 << 20, false}, // no more than the range
		{0x7fff00000000, 0x7fff00001000, 0, false},
		{0x1000, 0x2000, 0, true},
	} {
		got, err := hugeBytes(bufio.NewScanner(strings.NewReader(smaps)), c.begin, c.end)
		if got != c.want || (err != nil) != c.err {
			t.Errorf("%x-%x: %d, %v", c.begin, c.end, got, err)
		}
	}
}

func FuzzHugeBytes(f *testing.F) {
	f.Add(smaps, uint64(0x7f0000000000), uint64(0x7f0000400000))
	f.Fuzz(func(t *testing.T, text string, begin, end uint64) {
		if begin > end {
			return
		}
		if n, err := hugeBytes(bufio.NewScanner(strings.NewReader(text)), begin, end); err == nil && n > end-begin {
			t.Errorf("%d bytes of %d", n, end-begin)
		}
	})
}

// TestReadCPUs checks that readings are of the CPUs that may be used, and that the time between two of them passes on
// each.
func TestReadCPUs(t *testing.T) {
	before, err := ReadCPUs()
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	after, err := ReadCPUs()
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := machine.AllowedCPUs()
	if err != nil || len(before.CPUs) != len(allowed) {
		t.Errorf("%d CPUs of %v, %v", len(before.CPUs), allowed, err)
	}
	// The kernel counts ticks, and those of an idle CPU late.
	if sum := after.Since(before).Sum(); sum < 0.25*float64(len(allowed)) {
		t.Errorf("%.2f s passed on %d CPUs", sum, len(allowed))
	}
	if sum := after.Since(Reading{}).Sum(); sum != 0 {
		t.Errorf("%.2f s passed on CPUs that only one reading has", sum)
	}
}
