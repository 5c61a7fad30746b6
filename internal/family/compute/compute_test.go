package compute

import (
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/metric"
)

func TestParse(t *testing.T) {
	for name, want := range map[string]Workload{
		"sort":                             {Kind: Sort, CPUs: OneCPU},
		"sort:cpus=all":                    {Kind: Sort, CPUs: AllCPUs},
		"sort:cpus=3":                      {Kind: Sort, CPUs: "3"},
		"matrix:cpus=core":                 {Kind: Matrix, CPUs: OneCore},
		"memory-copy":                      {Kind: MemoryCopy, CPUs: OneCPU, Set: 256 * mib},
		"memory-copy:set=1GiB,cpus=2":      {Kind: MemoryCopy, CPUs: "2", Set: gib},
		"memory-latency:set=16KiB":         {Kind: MemoryLatency, CPUs: OneCPU, Set: 16 * kib},
		"memory-walk:pages=huge,set=64MiB": {Kind: MemoryWalk, CPUs: OneCPU, Set: 64 * mib, Pages: HugePages},
		"memory-walk:pages=4KiB":           {Kind: MemoryWalk, CPUs: OneCPU, Set: 256 * mib, Pages: SmallPages},
		"futex-wake":                       {Kind: FutexWake, CPUs: "2"},
		"compare-and-swap:cpus=core":       {Kind: CompareAndSwap, CPUs: OneCore},
		"stress-ng-vm":                     {Kind: StressNGVM, CPUs: OneCPU},
	} {
		got, err := Parse(name)
		if err != nil || got != want || got.Title() != name {
			t.Errorf("%s is %+v, %v, and is written %s", name, got, err, got.Title())
		}
	}
	// Defaults are not written, whatever the order of parameters.
	if got, err := Parse("memory-walk:cpus=1,set=262144KiB,pages=4KiB"); err != nil ||
		got.Title() != "memory-walk:pages=4KiB" {
		t.Errorf("%s, %v", got.Title(), err)
	}
}

func TestParseErrors(t *testing.T) {
	for name, want := range map[string]string{
		"":                                    "there is no kind",
		"sorted":                              "sort",
		"sort:set=1MiB":                       "sort has cpus",
		"sort:cpus=0":                         "1 to 4096",
		"sort:cpus=5000":                      "1 to 4096",
		"sort:cpus=half":                      "core",
		"sort:cpus=1,cpus=2":                  "twice",
		"futex-wake:cpus=2":                   "no parameters",
		"compare-and-swap:cpus=1":             "at least two CPUs",
		"memory-latency":                      "memory-latency:set=",
		"memory-latency:set=1KiB":             "4KiB to 1GiB",
		"memory-latency:set=2GiB":             "set",
		"memory-copy:set=100000":              "whole pages",
		"memory-walk":                         "memory-walk:pages=huge",
		"memory-walk:pages=2MiB":              "4KiB or huge",
		"memory-walk:pages=huge,set=16388KiB": "multiple of 2MiB",
	} {
		if _, err := Parse(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, without %q", name, err, want)
		}
	}
}

// FuzzParse checks that a workload is written as a name from which Parse reads the same workload again.
func FuzzParse(f *testing.F) {
	for _, k := range kinds {
		f.Add(string(k.name) + ":cpus=all,set=4MiB")
	}
	f.Add("memory-walk:pages=huge,set=64MiB,cpus=core")
	f.Fuzz(func(t *testing.T, text string) {
		w, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(w.Title()); err != nil || again != w {
			t.Errorf("%q is %+v, and %q is %+v, %v", text, w, w.Title(), again, err)
		}
	})
}

// TestKinds checks that the table has all properties of every kind, and that defaults are within the limits.
func TestKinds(t *testing.T) {
	seen := map[Kind]bool{}
	for _, k := range kinds {
		m, known := metric.Find(k.metric)
		if seen[k.name] || k.subject == "" || !known || m.Better == metric.Neutral || quantities[k.metric] == "" {
			t.Errorf("%+v", k)
		}
		for _, sentence := range []string{k.counts, k.about, k.not} {
			if sentence == "" || strings.HasSuffix(sentence, ".") {
				t.Errorf("%s has the sentence %q", k.name, sentence)
			}
		}
		if k.set%smallPage != 0 || k.set > k.largest || k.set > 0 && k.set < k.smallest {
			t.Errorf("%s has the set %d, from %d to %d", k.name, k.set, k.smallest, k.largest)
		}
		seen[k.name] = true
	}
}

// TestWords checks that readers see what differs between the cases of a kind.
func TestWords(t *testing.T) {
	for name, want := range map[string]string{
		"sort":                              "Sort",
		"sort:cpus=2":                       "Sort, 2 CPUs",
		"memory-latency:set=16KiB,cpus=all": "Memory latency, 16 KiB, all CPUs",
		"memory-walk:pages=4KiB,cpus=core":  "Memory walk, 4 KiB pages, all threads of a core",
		"memory-walk:pages=huge,set=64MiB":  "Memory walk, huge pages, 64 MiB",
		"compare-and-swap":                  "Contended compare-and-swap",
	} {
		w, err := Parse(name)
		if got := w.Traits().Words.Subject; err != nil || got != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
}
