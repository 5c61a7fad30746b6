package fio

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/family/storage"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
)

func spec(t *testing.T, name, text string) storage.Job {
	t.Helper()
	w, err := storage.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

var times = family.Times{Warmup: 1250 * time.Microsecond, Window: 10 * time.Second}

func TestJobFiles(t *testing.T) {
	const own = "[global]\nioengine=libaio\ndirect=1\nruntime=60s\nramp_time=10\n[mine]\n" +
		"stonewall\nrw=randrw\nrwmixread=30\nbs=8k\niodepth=4\nsize=22m\ncpus_allowed=3\n"
	directory, device := host.Volume{Path: "/mnt/a:b", Size: 1 << 30}, host.Volume{Path: "/dev/sdx", Device: true}
	var text strings.Builder
	for _, c := range []struct {
		name, text string
		volume     host.Volume
		cpus       []int
	}{
		{"randread-4k-qd64", "", directory, nil}, {"randrw70-4k-qd16-jobs4", "", device, []int{0, 2}},
		{"write-2300-qd1-fdatasync", "", directory, nil},
		{"randwrite-4k-qd64:precondition=yes", "", directory, []int{1}},
		{"randrw70-4k-qd1-jobs4:ioengine=sync,file-per-job=1g,gtod-reduce=yes", "", directory, nil},
		{"job/mine", own, directory, []int{0}}, {"job/other", "[other]\nrw=write\nbs=4k\nfdatasync=1\n", device, nil},
	} {
		w := spec(t, c.name, c.text)
		j, err := newJob(w)
		if err != nil {
			t.Fatal(err)
		}
		p, err := j.workFile(c.volume)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "# %s on %s: engine %s, direct %t, depth %d, threads %d, size %d %s\n# %s\n", c.name,
			c.volume.Path, j.engine, j.direct, j.depth, j.threads, j.size, j.why, host.Cmd{Args: arguments(times.Window)})
		text.WriteString(filling("probe", p, j.direct, 0, 1<<30, 2*time.Second))
		text.WriteString(filling("fill", p, j.direct, 1<<20, 1<<30, fillAtMost))
		if j.precondition {
			text.WriteString(j.preconditioning(p, times.Window, 1<<30, 41, c.cpus))
		}
		text.WriteString(j.measuring(p, times, 1<<30, 42, c.cpus) + "\n")
	}
	golden.Check(t, "testdata/jobs.golden", text.String())
}

func TestSupports(t *testing.T) {
	tool := New()
	for name, want := range map[string]string{"randread-4k-qd64": "",
		"write-2300-qd1-fdatasync": "", "write-2300-qd1": "bs=2300"} {
		err := tool.Supports(spec(t, name, ""))
		if (err == nil) != (want == "") || err != nil &&
			(!errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := tool.Supports(network.Workload{}); !errors.Is(err, result.ErrNotSupported) {
		t.Errorf("tcp-rr: %v", err)
	}
	// The text in a results directory is checked as strictly as the user's file.
	for text, want := range map[string]string{
		"[mine]\nrw=read\nexec_prerun=touch /tmp/x": "exec_prerun",
		"[mine]\nrw=read\n[more]\nrw=write":         "one job", "[other]\nrw=read": "one job",
		"[mine]\nrw=read\nfilename=/dev/sda": "filename",
	} {
		if err := tool.Supports(spec(t, "job/mine", text)); !errors.Is(err, result.ErrNotSupported) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSize(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	for _, c := range []struct {
		bandwidth float64
		window    time.Duration
		most      int64
		size      int64
		rule      string
		warns     bool
	}{
		{100 * mib, 10 * time.Second, 400 * gib, 2500 * mib, "25 s", false},
		{100 * mib, time.Minute, 400 * gib, 2500 * mib, "25 s", false},
		{100 * mib, 3 * time.Second, 400 * gib, 750 * mib, "7.5 s", false},
		{100 * mib, time.Second, 400 * gib, 500 * mib, "5 s", false},
		{1 * mib, 10 * time.Second, 400 * gib, 64 * mib, "64 MiB at least", false},
		{1 * mib, 10 * time.Second, 32 * mib, 32 * mib, "as much as may be used", true},
		{2000 * mib, 10 * time.Second, 16 * gib, 16 * gib, "as much as may be used", true},
		{0, 10 * time.Second, 16 * mib, 16 * mib, "as much as may be used", false},
		{2.5*mib + 1, 10 * time.Second, 400 * gib, 64 * mib, "64 MiB at least", false},
		{1e7 + 1, 10 * time.Second, 400 * gib, 239 * mib, "25 s", false},
	} {
		size, rule, warning := sizeByRule(c.bandwidth, c.window, c.most)
		if size != c.size || !strings.HasPrefix(rule, c.rule) || (warning != "") != c.warns {
			t.Errorf("%g B/s in %v of %d: %d by %q, %q", c.bandwidth, c.window, c.most, size, rule, warning)
		}
	}
}

// A busy host fails every command.
type busy struct{ *host.Local }

func (busy) Run(context.Context, host.Cmd) error { return errors.New("busy") }

// TestGivenSizeHasTime checks that there is enough time to write a file whose size the job sets, of which a part would
// be useless: the 10 GiB of a published job take longer than three minutes on a disk with 56 MiB/s.
func TestGivenSizeHasTime(t *testing.T) {
	j, err := newJob(spec(t, "randread-4k-qd128:file-per-job=10g", ""))
	if err != nil {
		t.Fatal(err)
	}
	volume := host.Volume{Path: "/mnt", Size: 1 << 40}
	r := &run{tool: New(), pair: host.Pair{Client: busy{host.NewLocal("here", netip.Addr{}, nil)}, Volume: volume}}
	if _, err := r.fill(t.Context(), j, 0); err == nil || len(r.raw) == 0 {
		t.Fatalf("%v, files %v", err, r.raw)
	}
	if text := string(r.raw[0].Data); !strings.Contains(text, "size=10737418240\n") ||
		!strings.Contains(text, "runtime=600000ms\n") {
		t.Error(text)
	}
}

// TestGivenSizesAddUp checks that the files of jobs that set their sizes take no more of a volume together than may be
// used.
func TestGivenSizesAddUp(t *testing.T) {
	j, err := newJob(spec(t, "randread-4k-qd1:file-per-job=600m", ""))
	if err != nil {
		t.Fatal(err)
	}
	tool := New()
	volume := host.Volume{Path: "/mnt", Size: 1 << 30, Kept: "one"}
	r := &run{tool: tool, pair: host.Pair{Client: busy{host.NewLocal("here", netip.Addr{}, nil)}, Volume: volume}}
	tool.keep(fileKey{"here", volume.Path, volume.Kept, "other"}, layout{given: 500 << 20})
	_, err = r.layOut(t.Context(), j)
	if err == nil || !strings.Contains(err.Error(), "besides 524 MB for other jobs") || len(r.raw) > 0 {
		t.Errorf("%v, files %v", err, r.raw)
	}
	tool.forget(volume.Kept)
	if _, err = r.layOut(t.Context(), j); err == nil || strings.Contains(err.Error(), "to use") {
		t.Errorf("alone: %v", err)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		f     failure
		want  []string
		place bool
	}{
		{failure{cause: host.ErrNoCommand}, []string{"fio is not on here", "apt-get install fio"}, true},
		{failure{stderr: "fio: engine libaio not loadable\nfio: failed to load engine\n", cause: errors.New("exit status 1")},
			[]string{"has no engine libaio", "libaio1"}, true},
		{failure{stderr: "fio: looks like your file system does not support direct=1/buffered=0\nfio: destination does not " +
			"support O_DIRECT\n", errno: 22, direct: true}, []string{"refuses direct I/O"}, true},
		{failure{errno: 22, direct: true}, []string{"larger blocks"}, true},
		{failure{errno: 28}, []string{"no space is left on /vol"}, true},
		{failure{errno: 30}, []string{"read-only"}, true},
		{failure{errno: 13}, []string{"may not be written by this user"}, true},
		{failure{errno: 5}, []string{"input/output errors"}, false},
		{failure{errno: 6}, []string{"was the volume removed?"}, false},
		{failure{stderr: "fio: file creation disallowed by allow_file_create=0", cause: errors.New("exit status 1")},
			[]string{"not there any more"}, false},
		{failure{stderr: "Bad option <x=3>\n", cause: errors.New("exit status 1")},
			[]string{"Bad option <x=3>", "exit status 1"}, false},
		{failure{errno: 110}, []string{"connection timed out"}, false},
	} {
		c.f.host, c.f.volume.Path = "here", "/vol"
		err := c.f.explain()
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %q does not say %q", c.f, err, want)
			}
		}
		if errors.Is(err, result.ErrNotSupported) != c.place || c.f.cause != nil && !errors.Is(err, c.f.cause) {
			t.Errorf("%+v: %v", c.f, err)
		}
	}
}

func TestPaths(t *testing.T) {
	for path, ok := range map[string]bool{"/a/b c": true, "/": true, "/dev/mapper/x-y": true, "/a;b": false,
		"/a\nb": false, "/a$b": false, "a": false, "/a/../b": false, "/a ": false, "/a\\b": false} {
		if _, err := workFileOf(host.Volume{Path: path}, "data"); (err == nil) != ok {
			t.Errorf("%q: %v", path, err)
		}
	}
}
