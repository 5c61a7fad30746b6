package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/app"
	"github.com/knotmeter/knotmeter/internal/result"
)

func sample(t *testing.T, format, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", format, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func options() Options {
	families := family.List{app.Family()}
	return Options{ID: "x", Version: "v", Now: time.Unix(1, 0), Alpha: 0.05, Delta: 0.02, Families: families}
}

// summary returns a line for each run.
func summary(got Import) string {
	var b strings.Builder
	for r := range got.Runs {
		fmt.Fprintf(&b, "%s %s %s %d valid=%t\n", r.ID, r.Target, r.Case, r.Block, r.Valid())
	}
	return b.String()
}

// rawFiles returns the raw files of each run, by its ID.
func rawFiles(got Import) map[string][]result.File {
	files := map[string][]result.File{}
	for r, raw := range got.Runs {
		files[r.ID] = raw
	}
	return files
}

func firstRun(got Import) result.Run {
	for r := range got.Runs {
		return r
	}
	return result.Run{}
}

func TestRunsOfACaseAndTargetAreNumbered(t *testing.T) {
	tcp, refused := sample(t, "iperf3", "tcp.json"), sample(t, "iperf3", "refused.json")
	o := options()
	o.Case = "pod-pod/other"
	o.Facts = []result.Fact{{Name: "link-rate", Value: "10 Gbit/s"}}
	sources := []Source{
		{Name: "a/1.json", Target: "a", Data: tcp}, {Name: "b/1.json", Target: "b", Data: tcp},
		{Name: "a/2.json", Target: "a", Data: refused},
		{Name: "a/3.json", Target: "a", Data: tcp}, {Name: "4.json", Target: "", Data: tcp},
	}
	got, err := Read(findFormat(t, "iperf3"), sources, o)
	if err != nil {
		t.Fatal(err)
	}
	want := `0001 a pod-pod/other/tcp-stream 1 valid=true
0002 b pod-pod/other/tcp-stream 1 valid=true
0003 a pod-pod/other/tcp-stream 2 valid=false
0004 a pod-pod/other/tcp-stream 3 valid=true
0005 unknown pod-pod/other/tcp-stream 1 valid=true
`
	if diff := cmp.Diff(want, summary(got)); diff != "" {
		t.Error(diff)
	}
	e := got.Experiment
	if e.Imported != "iperf3" || e.Baseline != "a" || e.Design.Blocks != 3 || e.Tool != "iperf3" {
		t.Errorf("experiment %+v", e)
	}
	if c := e.Cases; len(c) != 1 || c[0].Metric != "throughput" || c[0].Role != result.Primary {
		t.Errorf("cases %+v", c)
	}
	if !hasFact(got.Facts["b"], "link-rate") || !hasFact(firstRun(got).Facts, "link-rate") {
		t.Error("a given fact is missing")
	}
	if raw := rawFiles(got)["0004"]; len(raw) != 1 || raw[0].Name != "3.json" ||
		!bytes.Equal(bytes.TrimSpace(raw[0].Data), bytes.TrimSpace(tcp)) {
		t.Errorf("raw %v", raw)
	}
}

func TestADocumentIsKeptOnce(t *testing.T) {
	jobs := Source{Name: "jobs.json", Target: "disk", Data: sample(t, "fio", "jobs.json")}
	got, err := Read(findFormat(t, "fio"), []Source{jobs}, options())
	if err != nil {
		t.Fatal(err)
	}
	if raw := rawFiles(got); len(raw) != 5 || len(raw["0001"]) != 1 {
		t.Fatalf("raw files %v", raw)
	}
	for r, raw := range got.Runs {
		if shared := r.ID != "0001"; hasFact(r.Facts, "import.raw") != shared || len(raw) > 0 == shared {
			t.Errorf("run %s: facts %v", r.ID, r.Facts)
		}
	}
	metrics := map[string]string{}
	for _, c := range got.Experiment.Cases {
		metrics[c.Name] = c.Metric
	}
	want := map[string]string{"storage/randread-4k-qd1": "p50",
		"storage/randwrite-4k-qd8": "rate", "storage/read-1m-qd4": "throughput",
		"storage/randrw70-4k-qd4": "rate", "storage/write-2300-qd1-fdatasync": "sync-p99"}
	if diff := cmp.Diff(want, metrics); diff != "" {
		t.Error(diff)
	}
}

func TestOneNameIsForOneCase(t *testing.T) {
	o := options()
	o.Case = "my-disk"
	jobs := Source{Name: "jobs.json", Target: "disk", Data: sample(t, "fio", "jobs.json")}
	_, err := Read(findFormat(t, "fio"), []Source{jobs}, o)
	if err == nil || !strings.Contains(err.Error(), "--case my-disk names one case, "+
		"but the files measure storage/randread-4k-qd1, storage/randwrite-4k-qd8") {
		t.Errorf("error %v", err)
	}
	plus := Source{Name: "plus.json", Target: "disk", Data: sample(t, "fio", "plus.json")}
	got, err := Read(findFormat(t, "fio"), []Source{plus}, o)
	if err != nil || firstRun(got).Case != "my-disk" {
		t.Errorf("%s, error %v", summary(got), err)
	}
}

func TestPathsThatAreGivenAndTold(t *testing.T) {
	for _, c := range []struct {
		record      Record
		given, want string
	}{
		{Record{Workload: "tcp-rr"}, "", "tcp-rr"},
		{Record{}, "", "unknown"},
		{Record{Workload: "tcp-rr"}, "pod-pod/other", "pod-pod/other/tcp-rr"},
		{Record{Workload: "tcp-stream", Path: "pod-svc/other"}, "pod-pod/other", "pod-svc/other/tcp-stream"},
		{Record{Workload: "tcp-rr"}, "uplink", "uplink"},
		{Record{Case: "tcp-rr"}, "node-node", "node-node/tcp-rr"},
		{Record{Case: "pod-pod/same/tcp-rr"}, "node-node", "pod-pod/same/tcp-rr"},
	} {
		if got := caseName(c.record, c.given); got != c.want {
			t.Errorf("%+v with --case %q is %s", c.record, c.given, got)
		}
	}
}

// TestWholeAndParts checks a report of several tests with their total. If --case names the total as one of Knotmeter's
// own cases, verdicts are about that case's metric.
func TestWholeAndParts(t *testing.T) {
	report := []byte(`{"metrics":{"total":{"latencies":{"mean":2e9,"50th":1e9},"requests":9},` +
		`"sign":{"latencies":{"mean":3e9,"50th":1e9},"requests":5}}}`)
	for given, want := range map[string]string{
		"":                    "app/vault/sign p50, app/vault/total p50",
		"app/vault/published": "app/vault/published/sign p50, app/vault/published mean",
	} {
		o := options()
		o.Case = given
		got, err := Read(findFormat(t, "vault-benchmark"), []Source{{Name: "1.json", Target: "a", Data: report}}, o)
		if err != nil {
			t.Fatal(err)
		}
		var cases []string
		for _, c := range got.Experiment.Cases {
			cases = append(cases, c.Name+" "+c.Metric)
		}
		if text := strings.Join(cases, ", "); text != want {
			t.Errorf("%s: %s, not %s", given, text, want)
		}
	}
}

func TestTargetsAndPrimariesOfATable(t *testing.T) {
	o := options()
	o.Baseline, o.Primary = "vxlan, mtu 1450", []string{"*/tcp-rr"}
	comma := Source{Name: "t.csv", Target: "ignored", Data: sample(t, "csv", "comma.csv")}
	got, err := Read(findFormat(t, "csv"), []Source{comma}, o)
	if err != nil {
		t.Fatal(err)
	}
	want := `0001 native pod-pod/other/tcp-stream 1 valid=true
0002 native pod-pod/other/tcp-stream 2 valid=true
0003 vxlan, mtu 1450 pod-pod/other/tcp-stream 1 valid=true
0004 native pod-pod/other/tcp-rr 1 valid=true
0005 native api/create 1 valid=true
`
	if diff := cmp.Diff(want, summary(got)); diff != "" {
		t.Error(diff)
	}
	roles := map[string]result.Role{}
	for _, c := range got.Experiment.Cases {
		roles[c.Name] = c.Role
	}
	if roles["pod-pod/other/tcp-rr"] != result.Primary ||
		roles["api/create"] != result.Exploratory || got.Experiment.Baseline != o.Baseline {
		t.Errorf("roles %v, baseline %s", roles, got.Experiment.Baseline)
	}
	o.Baseline = "nobody"
	_, err = Read(findFormat(t, "csv"), []Source{{Name: "t.csv", Data: sample(t, "csv", "comma.csv")}}, o)
	want = `the baseline "nobody" is none of the targets: native, vxlan, mtu 1450`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v", err)
	}
}

// TestMemoryOfATable checks how much memory the runs of a table keep after they were read.
func TestMemoryOfATable(t *testing.T) {
	const rows = 50_000
	data := []byte("case,target,metric,unit,value\n" + strings.Repeat("app/x,a,throughput,Gbit/s,9.41\n", rows))
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	got, err := Read(findFormat(t, "csv"), []Source{{Name: "t.csv", Data: data}}, options())
	if err != nil {
		t.Fatal(err)
	}
	if kept := (int64(heap()) - int64(before)) / rows; kept > 400 {
		t.Errorf("each run keeps %d bytes", kept)
	}
	runs := 0
	for range got.Runs {
		runs++
	}
	if runs != rows {
		t.Errorf("%d runs", runs)
	}
	runtime.KeepAlive(data)
}

// TestEventsAreTheSameTest splits a test's output into events, as --json-stream prints it, and reads both.
func TestEventsAreTheSameTest(t *testing.T) {
	whole := sample(t, "iperf3", "tcp.json")
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(whole, &parts); err != nil {
		t.Fatal(err)
	}
	var intervals []json.RawMessage
	if err := json.Unmarshal(parts["intervals"], &intervals); err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer
	event := func(name string, data json.RawMessage) {
		line, err := json.Marshal(map[string]any{"event": name, "data": data})
		if err != nil {
			t.Fatal(err)
		}
		stream.Write(append(line, '\n'))
	}
	for range 2 {
		event("start", parts["start"])
		for _, i := range intervals {
			event("interval", i)
		}
		event("end", parts["end"])
	}
	want, err := readIperf3("f", whole)
	if err != nil {
		t.Fatal(err)
	}
	got, err := readIperf3("f", stream.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Records) != 2 || got.Records[1].Place != "line 5" {
		t.Fatalf("%d records", len(got.Records))
	}
	if diff := cmp.Diff(want.Records[0].Measurement, got.Records[0].Measurement); diff != "" {
		t.Error(diff)
	}
}

func TestSeveralTestsInAFile(t *testing.T) {
	tcp := sample(t, "iperf3", "tcp.json")
	got, err := readIperf3("f", bytes.Join([][]byte{[]byte("run 1\n"), tcp, []byte("run 2\n"), tcp}, nil))
	if err != nil || len(got.Records) != 2 {
		t.Fatalf("%d records, error %v", len(got.Records), err)
	}
	rr := sample(t, "netperf", "tcp-rr.txt")
	more, err := readNetperf("f",
		bytes.Join([][]byte{rr, sample(t, "netperf", "udp-stream.txt"), rr}, []byte("$ netperf …\n")))
	if err != nil || len(more.Records) != 3 || more.Records[1].Workload != "udp-stream-unpaced:size=1400" {
		t.Errorf("%d records, error %v", len(more.Records), err)
	}
}

// TestOldIperf3 reads UDP without sums per side, as printed before iperf3 3.7.
func TestOldIperf3(t *testing.T) {
	text := `{"start":{"version":"iperf 3.1.3","target_bitrate":8000000,
"test_start":{"protocol":"UDP","num_streams":1,"blksize":1000,"duration":10}},
"intervals":[],"end":{"sum":{"start":0,"end":10,"seconds":10,"bytes":10000000,"bits_per_second":8000000,
"jitter_ms":0.02,"lost_packets":2500,"packets":10000,"lost_percent":25}}}`
	got, err := readIperf3("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range got.Records[0].Values {
		want := map[string]float64{"throughput": 6e6, "loss": 0.25, "throughput-sent": 8e6, "rate": 750, "offered": 1000}
		if w, ok := want[v.Metric]; ok && v.Number != w {
			t.Errorf("%s is %v, wanted %v", v.Metric, v.Number, w)
		}
	}
	if r := got.Records[0]; r.Workload != "udp-stream:size=1000,rate=1000" || len(r.Warnings) != 1 {
		t.Errorf("%s, warnings %q", r.Workload, r.Warnings)
	}
}

func TestUnitsOfNetperf(t *testing.T) {
	for text, want := range map[string]float64{"10^0bits/s": 1, "10^3bits/s": 1e3, "10^6bits/sec": 1e6,
		"10^9bits/s": 1e9, "Bytes/s": 8, "KBytes/s": 8192, "MBytes/sec": 8 << 20, "GBytes/s": 8 << 30, "Trans/s": 1} {
		if got, u := netperfUnit(text); got != want || u == "" {
			t.Errorf("%s is %v %s", text, got, u)
		}
	}
	if _, u := netperfUnit("furlongs/s"); u != "" {
		t.Errorf("furlongs are %s", u)
	}
}

func TestRawNames(t *testing.T) {
	for name, want := range map[string]string{"a/b c.json": "b_c.json", "x.hdr": "x.hdr.txt",
		".hidden": "_hidden", strings.Repeat("é", 300): strings.Repeat("_", 200)} {
		if got := rawName(name); got != want {
			t.Errorf("%q is kept as %q, wanted %q", name, got, want)
		}
	}
}
