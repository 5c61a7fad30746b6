package fio

import (
	"bytes"
	"errors"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/familytest"
	"github.com/knotmeter/knotmeter/internal/family/storage"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// short holds the times of a run that is just long enough to be valid.
var short = family.Times{Warmup: 100 * time.Millisecond, Window: 500 * time.Millisecond}

func TestConformance(t *testing.T) {
	var last host.Pair
	familytest.Suite(t, familytest.Config{
		Tool:    New(),
		Pair:    func(t *testing.T) host.Pair { last = here(t, disk(t, 32<<20)); return last },
		Running: func(t *testing.T) []string { return running(t, last.Volume.Path) },
		Times:   short,
		Workloads: []family.Workload{
			parsed(t, "randread-4k-qd1"), parsed(t, "randwrite-4k-qd8"),
			parsed(t, "read-1m-qd4"), parsed(t, "randrw70-4k-qd4-jobs2"),
			parsed(t, "write-2300-qd1-fdatasync"),
		},
	})
}

func value(m result.Measurement, name string) float64 {
	v, ok := result.Run{Values: m.Values}.Value(name)
	if !ok {
		return math.NaN()
	}
	return v.Number
}

// TestMixedAndOwn checks that the parts of a mixed job and its syncs are reported and add up.
func TestMixedAndOwn(t *testing.T) {
	p := here(t, disk(t, 32<<20))
	m, err := New().Run(t.Context(), p, parsed(t, "randrw70-4k-qd4-jobs2"), short)
	if err != nil {
		t.Fatal(err)
	}
	all, reads, writes := value(m, "rate"), value(m, "read-rate"), value(m, "write-rate")
	if !(math.Abs(all-reads-writes) < 1e-6*all) || !(reads/all > 0.5 && reads/all < 0.9) {
		t.Errorf("%g of %g reads and %g writes a second", all, reads, writes)
	}
	if n := value(m, "operations"); n != value(m, "read-operations")+value(m, "write-operations") ||
		len(m.Histograms) != 3 {
		t.Errorf("%g operations, histograms %v", n, m.Histograms)
	}
	jobs, err := storage.ParseFile("x.fio", []byte("[global]\nsize=8m\nruntime=99s\nioengine=psync\n"+
		"[wal]\nrw=write\nbs=8k\nfdatasync=1\n[rr]\nrw=randread\niodepth=4\nioengine=libaio\ndirect=1\nnumjobs=2\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs {
		w, err := storage.Parse("job/"+j.Name, j.Text())
		if err != nil {
			t.Fatal(err)
		}
		m, err := New().Run(t.Context(), p, w, family.Times{Window: 400 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range familytest.Check(w, m) {
			t.Errorf("%s: %s", j.Name, problem)
		}
		if f := result.FactOf(m.Facts, "layout.size"); f != "8388608 B" {
			t.Errorf("%s: the file has %s", j.Name, f)
		}
		if syncs := value(m, "sync-operations"); (syncs > 0) != (j.Name == "wal") {
			t.Errorf("%s: %g syncs", j.Name, syncs)
		}
	}
}

// TestFilePerJobWithoutLatencies checks that K-Bench's synchronous jobs have a file for each thread and no latencies.
func TestFilePerJobWithoutLatencies(t *testing.T) {
	p := here(t, disk(t, 32<<20))
	w := parsed(t, "randrw70-4k-qd1-jobs4:ioengine=sync,file-per-job=4m,gtod-reduce=yes")
	m, err := New().Run(t.Context(), p, w, short)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range familytest.Check(w, m) {
		t.Error(problem)
	}
	for _, name := range []string{"p50", "mean", "operations", "read-p99"} {
		if n := value(m, name); !math.IsNaN(n) {
			t.Errorf("%s is %g", name, n)
		}
	}
	for fact, want := range map[string]string{"fio.ioengine": "sync", "fio.gtod-reduce": "1", "layout.size": "4194304 B"} {
		if got := result.FactOf(m.Facts, fact); got != want {
			t.Errorf("%s is %q and not %q", fact, got, want)
		}
	}
	if !(value(m, "rate") > 0) || len(m.Histograms) != 0 {
		t.Errorf("%g a second, histograms %v", value(m, "rate"), m.Histograms)
	}
	files, err := filepath.Glob(filepath.Join(p.Volume.Path, "knotmeter-4x4194304.?.fio"))
	if err != nil || len(files) != 4 {
		t.Errorf("files %v, %v", files, err)
	}
	for _, file := range files {
		if s, err := os.Stat(file); err != nil || s.Size() != 4<<20 {
			t.Errorf("%s: %v, %v", file, s, err)
		}
	}
	device := host.Volume{Path: "/dev/sdx", Device: true}
	if _, err := New().Run(t.Context(), here(t, device), w, short); !errors.Is(err, result.ErrNotSupported) {
		t.Errorf("on a device: %v", err)
	}
}

// TestKeptAndSeries checks that a file is written once on a kept volume and every time on another, and that a longer
// run has a series.
func TestKeptAndSeries(t *testing.T) {
	tool := New()
	p := here(t, disk(t, 32<<20))
	p.Volume.Kept = "one"
	w, times := parsed(t, "randread-4k-qd1"), short
	for i, want := range []string{"for this run", "for an earlier run"} {
		if i == 1 {
			times.Window = 3 * time.Second
		}
		m, err := tool.Run(t.Context(), p, w, times)
		if err != nil {
			t.Fatal(err)
		}
		if got := result.FactOf(m.Facts, "layout.filled"); !strings.HasPrefix(got, want) {
			t.Errorf("run %d: filled %s", i, got)
		}
		if i == 0 {
			continue
		}
		if len(m.Series) != 2 || len(m.Series[0].Values) < 2 {
			t.Fatalf("series %v", m.Series)
		}
		sum := 0.0
		for _, v := range m.Series[0].Values {
			sum += v
		}
		if mean := sum / float64(len(m.Series[0].Values)); math.Abs(mean/value(m, "rate")-1) > 0.35 {
			t.Errorf("the series is around %g, the rate %g", mean, value(m, "rate"))
		}
	}
	if entries, err := os.ReadDir(p.Volume.Path); err != nil ||
		len(entries) != 1 || !strings.HasPrefix(entries[0].Name(), "knotmeter-") {
		t.Errorf("on the volume: %v, %v", entries, err)
	}
}

// TestPreconditioning checks that a preconditioned job runs before its window until its rate is steady, and that other
// jobs that write to a new file have a warning.
func TestPreconditioning(t *testing.T) {
	tool := New()
	p := here(t, disk(t, 32<<20))
	warnings := func(name string) (list []result.Code, m result.Measurement) {
		m, err := tool.Run(t.Context(), p, parsed(t, name), short)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range m.Warnings {
			if w.Code == result.FileNew || w.Code == result.Unsteady {
				list = append(list, w.Code)
			}
		}
		return list, m
	}
	if list, m := warnings("randread-4k-qd1"); len(list) > 0 || result.FactOf(m.Facts, "precondition.steady") != "" {
		t.Errorf("of reads: %q, %v", list, m.Facts)
	}
	p.Volume.Kept = "one"
	for i, want := range [][]result.Code{{result.FileNew}, nil} {
		if list, _ := warnings("randwrite-4k-qd8"); !slices.Equal(list, want) {
			t.Errorf("run %d: %q, want %q", i, list, want)
		}
	}
	p.Volume.Kept = ""
	list, m := warnings("randwrite-4k-qd8:precondition=yes")
	took, _, err := unit.Parse(result.FactOf(m.Facts, "precondition.time"))
	if len(list) > 0 || err != nil || took < 4 || result.FactOf(m.Facts, "precondition.steady") != "yes" || m.Window > 2 {
		t.Errorf("%q after %g s, %v; a window of %g s, %v", list, took, err, m.Window, m.Facts)
	}
	if !slices.ContainsFunc(m.Raw, func(f result.File) bool { return f.Name == "precondition.json" }) {
		t.Error("what fio said of the preconditioning is not kept")
	}
}

// TestPlacesThatCannot checks that errors name the problem of a volume and its remedy.
func TestPlacesThatCannot(t *testing.T) {
	ram := func(t *testing.T) host.Volume {
		return host.Volume{Path: mounted(t, "mount -t ramfs ramfs $DIR"), Size: 8 << 20}
	}
	tests := []struct {
		name, job string
		volume    func(t *testing.T) host.Volume
		want      []string
		place     bool
	}{
		{"no direct I/O", "randread-4k-qd4", ram, []string{"refuses direct I/O", "measure a directory on a disk"}, true},
		{"full", "randread-4k-qd4", func(t *testing.T) host.Volume {
			return host.Volume{Path: mounted(t, "mount -t tmpfs -o size=4m tmpfs $DIR"), Size: 64 << 20}
		}, []string{"no space is left on", "size="}, true},
		{"read-only", "randwrite-4k-qd4", func(t *testing.T) host.Volume {
			return host.Volume{Path: mounted(t, "mount -t tmpfs -o ro tmpfs $DIR"), Size: 64 << 20}
		}, []string{"is mounted read-only", "mount it for writing"}, true},
		{"too small", "read-1m-qd4", func(t *testing.T) host.Volume { return disk(t, 1000) },
			[]string{"has 1.00 kB to use", "size="}, true},
		{"too small for etcd", "write-2300-qd1-fdatasync", func(t *testing.T) host.Volume { return disk(t, 4<<20) },
			[]string{"takes 23.1 MB"}, true},
		{"odd blocks", "write-2300-qd1", func(t *testing.T) host.Volume { return disk(t, 32<<20) },
			[]string{"multiples of 512", "bs=2300"}, true},
		{"gone", "randread-4k-qd1", func(t *testing.T) host.Volume {
			v := disk(t, 32<<20)
			v.Path += "-gone"
			return v
		}, []string{"is not there any more"}, false},
		{"no volume", "randread-4k-qd1", func(*testing.T) host.Volume { return host.Volume{} }, []string{"no volume"}, false},
		{"odd path", "randread-4k-qd1", func(t *testing.T) host.Volume {
			return host.Volume{Path: "/tmp/a;b", Size: 64 << 20}
		}, []string{"letters, digits"}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := here(t, test.volume(t))
			_, err := New().Run(t.Context(), p, parsed(t, test.job), short)
			if err == nil || errors.Is(err, result.ErrNotSupported) != test.place {
				t.Fatalf("%v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

// TestFileRemoved checks that the run fails if the file of a kept volume was removed, and that the next one writes it
// again.
func TestFileRemoved(t *testing.T) {
	p := here(t, disk(t, 32<<20))
	p.Volume.Kept = "gone"
	tool, w := New(), parsed(t, "randread-4k-qd1")
	if _, err := tool.Run(t.Context(), p, w, short); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(p.Volume.Path, "knotmeter-data.fio")); err != nil {
		t.Fatal(err)
	}
	if _, err := tool.Run(t.Context(), p, w, short); err == nil || !strings.Contains(err.Error(), "not there any more") {
		t.Errorf("%v", err)
	}
	if _, err := tool.Run(t.Context(), p, w, short); err != nil { // it is written again
		t.Errorf("%v", err)
	}
}

func TestDevice(t *testing.T) {
	device := loop(t, 48)
	p := here(t, host.Volume{Path: device, Device: true, Size: 48 << 20})
	for _, name := range []string{"randread-4k-qd8", "write-1m-qd4", "write-2300-qd1-fdatasync"} {
		w := parsed(t, name)
		m, err := New().Run(t.Context(), p, w, short)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range familytest.Check(w, m) {
			t.Errorf("%s: %s", name, problem)
		}
	}
	if info, err := os.Stat(device); err != nil || info.Mode()&os.ModeDevice == 0 {
		t.Errorf("the device became %v, %v", info, err)
	}
}

// TestFilledInTwoSteps checks that the rest of a file is appended to what the probe wrote: a hole would be read faster
// than from any disk.
func TestFilledInTwoSteps(t *testing.T) {
	const most = 32 << 20
	for name, volume := range map[string]func() host.Volume{
		"file":   func() host.Volume { return disk(t, most) },
		"device": func() host.Volume { return host.Volume{Path: loop(t, 48), Device: true, Size: most} },
	} {
		t.Run(name, func(t *testing.T) {
			p := here(t, volume())
			where, err := workFileOf(p.Volume, "data")
			if err != nil {
				t.Fatal(err)
			}
			r := &run{tool: New(), pair: p}
			for _, to := range []struct{ from, size int64 }{{0, 5 << 20}, {5 << 20, most}} {
				side, err := r.write(t.Context(), "fill",
					filling("fill", where, true, to.from, to.size, fillAtMost), fillAtMost, true)
				if err != nil || int64(side.Bytes) != to.size-to.from {
					t.Fatalf("%+v: wrote %g bytes, %v", to, side.Bytes, err)
				}
			}
			path := filepath.Join(where.directory, where.file)
			content, err := os.ReadFile(path)
			if err != nil || len(content) < most {
				t.Fatalf("%d bytes, %v", len(content), err)
			}
			for at := 0; at < most; at += smallest {
				if part := content[at : at+smallest]; bytes.Count(part, []byte{0}) > len(part)/2 {
					t.Errorf("nothing was written at %d MiB", at/smallest)
				}
			}
		})
	}
}

// TestAccuracyOfLimits measures a device that the kernel limits to 500 operations and 50 MB per second, as a block
// device and with a file system.
func TestAccuracyOfLimits(t *testing.T) {
	const iops, bytes, within = 500, 50_000_000, 0.03
	device := loop(t, 112)
	group := limited(t, device, iops, bytes)
	volumes := map[string]host.Volume{"block": {Path: device, Device: true, Size: 64 << 20}}
	// The file system is made last, because the test of the block device overwrites it.
	for _, name := range []string{"block", "ext4"} {
		if name == "ext4" {
			sh(t, "mkfs.ext4 -q -F "+device)
			volumes[name] = host.Volume{Path: mounted(t, "mount "+device+" $DIR"), Size: 64 << 20}
		}
		p := here(t, volumes[name])
		p.Client = slowed{host.NewLocal("slowed", netip.MustParseAddr("127.0.0.1"), nil), group}
		p.Volume.Kept = name
		tool := New()
		for _, c := range []struct {
			job, metric string
			want        float64
		}{{"randread-4k-qd16", "rate", iops}, {"randwrite-4k-qd16", "rate", iops},
			{"read-256k-qd8", "throughput", 8 * bytes}} {
			w := parsed(t, c.job)
			m, err := tool.Run(t.Context(), p, w, family.Times{Warmup: time.Second, Window: 5 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			got := value(m, c.metric)
			t.Logf("%s %s: %s %.5g, limit %.5g, %+.2f %%; p50 %.3g s",
				name, c.job, c.metric, got, c.want, 100*(got/c.want-1), value(m, "p50"))
			if len(m.Invalid) > 0 || !(math.Abs(got/c.want-1) <= within) {
				t.Errorf("%s %s: %s is %.5g where the kernel lets %.5g through; invalid %v",
					name, c.job, c.metric, got, c.want, m.Invalid)
			}
		}
	}
	if left := running(t, device); len(left) > 0 && !slices.Contains(left, device) {
		t.Errorf("left: %v", left)
	}
}
