package storage

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/golden"
)

const published = `; of a benchmark that was published
[global]
direct=1
ioengine=libaio
runtime=60s
ramp_time=10s
size=10Gi
time_based=1
group_reporting
thread
cpus_allowed=1

[read_iops]
stonewall
readwrite=randread
bs=4k
iodepth=128
[global]
nice=1
[write_bw]
stonewall
readwrite=randwrite
bs=1024k
iodepth=128
`

func TestParseFile(t *testing.T) {
	jobs, err := ParseFile("x.fio", []byte(published))
	if err != nil || len(jobs) != 2 {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	first, second := jobs[0], jobs[1]
	if _, is := first.Get("nice"); is || first.Number("nice", -1) != -1 {
		t.Error("what is global later is not of the first job")
	}
	if rw, _ := first.Get("rw"); rw != "randread" || second.Number("nice", 0) != 1 || second.Name != "write_bw" {
		t.Errorf("%+v", jobs)
	}
	if size, is, err := first.Size(); size != 10e9 || !is || err != nil {
		t.Errorf("size %d %t %v", size, is, err)
	}
	if first.Duration("runtime") != time.Minute || first.Duration("ramp_time") != 10*time.Second ||
		!first.Flag("group_reporting") || first.Flag("fdatasync") {
		t.Errorf("%+v", first)
	}
	again, err := ParseFile("x.fio", []byte(second.Text()))
	if err != nil || len(again) != 1 || again[0].Text() != second.Text() {
		t.Errorf("%v\n%s", err, second.Text())
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"[a]\nrw=read\nexec_prerun=touch /x": "x.fio:3: not a job file that can be run: exec_prerun: " +
			"it runs a program",
		"[global]\nfilename=/dev/sda\n[a]\nrw=read": "x.fio:2: not a job file that can be run: filename: the " +
			"file is chosen by Knotmeter",
		"[a]\nrw=read\ndirectory=/":             ":3: ",
		"[a]\nrw=read\ninclude other.fio":       ":3: ",
		"include other.fio\n[a]\nrw=read":       ":1: ",
		"[a]\nrw=read\nwrite_bw_log=/tmp/x":     "it writes files elsewhere",
		"[a]\nrw=read\nlog_hist_msec=3":         "it writes files elsewhere",
		"[a]\nrw=read\nioengine=external:/x.so": "ioengine=external:/x.so: it is one of libaio",
		"[a]\nrw=read\nioengine=net":            "others load code or leave the volume",
		"[a]\nrw=read\ngtod_reduce=1":           "takes the latencies away",
		"[a]\nrw=read\nbs=${BS}":                "variables and quotes",
		"[a]\nrw=read\nbs=4k ; four":            "a comment takes a line of its own",
		"[a]\nrw=read\nnever_heard_of=1":        "never_heard_of is not among the options",
		"[a]\nrw=read\nbs":                      "bs has no value",
		"[a]\nrw=trim":                          "rw=trim: it is one of read",
		"[a]\nbs=4k": ":1: not a job file that can be run: job a does not say " +
			"what it does",
		"[a]\nrw=read\nsize=10%":          `"10%" is no size`,
		"[a]\nrw=read\nsize=99999999999t": "not from 1 byte to 1 PiB",
		"[a]\nrw=read\n[a]\nrw=write": "x.fio:3: not a job file that can be run: there is a job " +
			"a already, in line 1",
		"[a]\nrw=read\nnumjobs=100000": "x.fio:1: not a job file that can be run: job a: numjobs=100000 is not a number " +
			"from 1 to 256",
		"[a]\nrw=read\nnumjobs=1k":                     "numjobs=1k is not a number from 1 to 256",
		"[global]\nnumjobs=0\n[a]\nrw=read":            "numjobs=0 is not a number",
		"[a]\nrw=read\niodepth=65536":                  "iodepth=65536 is not a number from 1 to 1024",
		"[a]\nrw=read\nbs=4k,1g":                       `"1g" is not a size up to 16777216 bytes`,
		"[a]\nrw=read\nbsrange=4k-1t":                  `"1t" is not a size up to`,
		"[a]\nrw=read\nbssplit=4k/10:64m/90":           `"64m" is not a size up to`,
		"[a]\nrw=read\nnumjobs=64\niodepth=128\nbs=1m": "64 jobs with 128 operations in flight of 1048576 bytes take 8 GiB",
		"[a b]\nrw=read":                               "letters, digits",
		"rw=read":                                      "before the first section",
		"":                                             "it has 0 jobs",
		"[global]\nrw=read":                            "it has 0 jobs",
		"[a]\nrw=read\n\x00":                           `character '\x00'`,
		"[a]\nrw=read\ndescription=" + strings.Repeat("x", 2000): "more than 1024 bytes",
		strings.Repeat("\n", maxFile+1):                          "more than 65536 bytes",
	} {
		_, err := ParseFile("x.fio", []byte(text))
		if !errors.Is(err, ErrJobFile) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "512b": 512, "4k": 4096,
		"4KB": 4096, "22m": 22 << 20, "1t": 1 << 40, "4ki": 4000, "10Gi": 10e9, "1mib": 1e6,
		"0": 0, "4kk": 0, "k": 0, "1.5g": 0, "-1": 0} {
		if got, err := parseSize(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
}

func TestNoOptionIsBoth(t *testing.T) {
	for _, key := range allowed {
		if refused[key] != "" {
			t.Errorf("%s is allowed and refused", key)
		}
	}
}

// FuzzParseFile checks that a file that is accepted parses again to the same jobs, and has only allowed options.
func FuzzParseFile(f *testing.F) {
	f.Add([]byte(published))
	f.Add([]byte("[a]\nrw=read\nexec_prerun=x"))
	f.Add([]byte("[global]\n[a]\r\nrw = randrw:4\nbs=4k,8k\n\n;x\n[b]\nRW=write\nsize=1g"))
	f.Fuzz(func(t *testing.T, data []byte) {
		jobs, err := ParseFile("x", data)
		if err != nil {
			if !errors.Is(err, ErrJobFile) {
				t.Fatalf("%v", err)
			}
			return
		}
		for _, j := range jobs {
			again, err := ParseFile("x", []byte(j.Text()))
			if err != nil || len(again) != 1 || again[0].Text() != j.Text() || again[0].Name != j.Name {
				t.Fatalf("%q becomes %q: %v", data, j.Text(), err)
			}
			for _, o := range slices.Concat(j.Global, j.Own) {
				if !slices.Contains(allowed, o.Key) || strings.ContainsAny(o.Value, "\n$\"'`;#\\") {
					t.Fatalf("%q has %q", data, o)
				}
			}
			j.Duration("runtime")
		}
	})
}

// TestPage compares the list of options in the documentation with the allowed ones.
func TestPage(t *testing.T) {
	const page, begin, end = "../../../docs/storage.md", "<!-- options: written by go test ./internal/family/storage " +
		"-update -->\n",
		"<!-- end of options -->"
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the options", page)
	}
	lines := []string{""}
	for _, key := range slices.Sorted(slices.Values(allowed)) {
		if len(lines[len(lines)-1])+len(" ``"+key) > 120 {
			lines = append(lines, "")
		}
		last := &lines[len(lines)-1]
		*last = strings.TrimSpace(*last + " `" + key + "`")
	}
	engines := "\n\nwith `ioengine` one of " + strings.Join(engines, ", ") + ".\n\n"
	golden.Check(t, page, before+begin+"\n"+strings.Join(lines, "\n")+engines+end+after)
}
