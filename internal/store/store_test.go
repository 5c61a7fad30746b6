package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

func experiment() result.Experiment {
	return result.Experiment{
		Schema: result.ExperimentSchema, ID: "2026-12-01-a1b2", Created: time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC),
		Version: "v0", Seed: 18446744073709551615, Suite: "network:quick", Tool: "native",
		Design:   result.Design{Kind: "randomised complete blocks", Blocks: 11, Duration: 1, Alpha: 0.05, Delta: 0.02},
		Baseline: "lab:native",
		Targets: []result.Target{{Name: "lab:native", Spec: result.SpecOf("lab:native")},
			{Name: "jumbo/../x", Spec: result.SpecOf("lab:vxlan?mtu=9000&label=jumbo/../x")}},
		Cases:       []result.Case{{Name: "pod-pod/other/tcp-rr", Role: result.Primary, Metric: "p50"}},
		NotMeasured: []result.NotMeasured{},
	}
}

func run(id int) (result.Run, []result.File) {
	r := result.Run{
		Schema: result.RunSchema, ID: fmt.Sprintf("%04d", id), Case: "pod-pod/other/tcp-rr", Target: "lab:native",
		Block: id, Attempt: 1, Slot: 1, Start: time.Date(2026, 12, 1, 8, 0, id, 0, time.UTC),
		Setup: 0.3, Window: 1, Cleanup: 0.1, Tool: "native",
		Values:     []result.Value{{Metric: "p50", Unit: unit.Second, Better: metric.Lower, Number: 20e-6}},
		Series:     []result.Series{{Name: "rate", Unit: unit.PerSecond, Step: 0.1, Values: []float64{1, 2}}},
		Histograms: []result.Histogram{{Name: "latency", Unit: "ns", Count: 7, Encoded: "HISTFAAAAB"}},
		Warnings:   []result.Warning{{Code: "line", Text: "a \u2028 line\nof text"}},
	}
	return r, []result.File{{Name: "commands.txt", Data: []byte("agent\n")}, {Name: "client.out", Data: []byte{0, 1, 255}}}
}

// site returns a site as passed to the writer, which sets schema and session.
func site(number int) result.Site {
	return result.Site{
		Number: number, Target: "lab:native", Block: number, Start: time.Date(2026, 12, 1, 8, 0, number, 0, time.UTC),
		Setup: 1.5, Used: 20, Cleanup: 0.75,
		Values:   []result.Value{{Metric: "pods", Unit: unit.Count, Number: 2}},
		Warnings: []result.Warning{{Code: result.SiteNotRemoved, Text: "a \u2028 line\nof text"}},
	}
}

// withoutEncoding returns the run as it is read: with its histograms not encoded.
func withoutEncoding(r result.Run) result.Run {
	r.Histograms = append([]result.Histogram(nil), r.Histograms...)
	for i := range r.Histograms {
		r.Histograms[i].Encoded = ""
	}
	return r
}

// fill writes a directory with n runs, and as many sites.
func fill(t *testing.T, n int) (string, []result.Run) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "results", "one")
	w, err := Create(dir, experiment())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var runs []result.Run
	for _, target := range experiment().Targets {
		if err := w.WriteFacts(target.Name, []result.Fact{{Name: "kernel", Value: "6.18"}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		r, raw := run(i + 1)
		if err := w.Append(r, raw); err != nil {
			t.Fatal(err)
		}
		if err := w.WriteSite(site(i + 1)); err != nil {
			t.Fatal(err)
		}
		runs = append(runs, withoutEncoding(r))
	}
	return dir, runs
}

func TestRoundTrip(t *testing.T) {
	dir, runs := fill(t, 3)
	got, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(experiment(), got.Experiment); diff != "" {
		t.Errorf("experiment (-written +read):\n%s", diff)
	}
	if diff := cmp.Diff(runs, got.Runs); diff != "" {
		t.Errorf("runs (-written +read):\n%s", diff)
	}
	if len(got.Warnings) != 0 || len(got.Facts) != 2 || got.Facts["jumbo/../x"][0].Value != "6.18" {
		t.Errorf("warnings %v, facts %v", got.Warnings, got.Facts)
	}
	h, err := got.Histogram("0002", "latency")
	if err != nil || h.Encoded != "HISTFAAAAB" || h.Count != 7 {
		t.Errorf("histogram %+v, %v", h, err)
	}
	for _, name := range [][2]string{{"0002", "nothing"}, {"0009", "latency"}, {"../0002", "latency"}} {
		if _, err := got.Histogram(name[0], name[1]); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("histogram %v: %v", name, err)
		}
	}
	files, err := got.Raw("0001")
	if err != nil || len(files) != 3 || files[0].Name != "client.out" || !bytes.Equal(files[0].Data, []byte{0, 1, 255}) {
		t.Errorf("raw %v, %v", files, err)
	}
	if _, err := got.Raw("../.."); !errors.Is(err, ErrFormat) {
		t.Errorf("raw files of a run named ../..: %v", err)
	}
	if line, _ := os.ReadFile(filepath.Join(dir, RunsFile)); bytes.Contains(line, []byte("HISTF")) ||
		bytes.Count(line, []byte("\n")) != 3 {
		t.Errorf("runs.ndjson holds histograms, or not one line a run:\n%s", line)
	}
	if strays, _ := filepath.Glob(filepath.Join(dir, "*", "*.new")); len(strays) > 0 {
		t.Errorf("left over: %v", strays)
	}
}

// TestTornLastLine checks that reading drops an incomplete last line, as a crash may leave it, with a warning. Resuming
// continues after the last complete line, and the run of the torn line can be written again under the same ID.
func TestTornLastLine(t *testing.T) {
	dir, runs := fill(t, 3)
	name := filepath.Join(dir, RunsFile)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for cut := last; cut <= len(whole); cut++ {
		if err := os.WriteFile(name, whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		want, warnings := runs[:2], 1
		switch cut {
		case last:
			warnings = 0
		case len(whole):
			want, warnings = runs, 0
		}
		got, err := Open(dir)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if !cmp.Equal(want, got.Runs) || len(got.Warnings) != warnings {
			t.Fatalf("cut at %d: %d runs, warnings %v", cut, len(got.Runs), got.Warnings)
		}
		if warnings == 1 && !strings.Contains(got.Warnings[0], RunsFile+":3: the last line is torn") {
			t.Fatalf("cut at %d: warning %q", cut, got.Warnings[0])
		}
		resumeAndAppend(t, dir, len(want))
		if after, _ := os.ReadFile(name); len(want) == 2 && !bytes.Equal(after, whole) {
			t.Fatalf("cut at %d: after resuming the file is\n%s", cut, after)
		}
	}
}

func resumeAndAppend(t *testing.T, dir string, have int) {
	t.Helper()
	w, got, err := Resume(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if len(got.Runs) != have {
		t.Fatalf("resumed with %d runs, wanted %d", len(got.Runs), have)
	}
	r, raw := run(have)
	if err := w.Append(r, raw); err == nil {
		t.Fatal("a run of the earlier session was appended again")
	}
	r, raw = run(have + 1)
	if err := w.Append(r, raw); err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir)
	if err != nil || len(again.Runs) != have+1 || len(again.Warnings) != 0 {
		t.Fatalf("after resuming: %+v, %v", again, err)
	}
}

// TestSwitches checks that switches read back as they were written, wherever a crash cut the file, and the next session
// continues the numbers. An experiment without switches has no such file.
func TestSwitches(t *testing.T) {
	dir, _ := fill(t, 2)
	name := filepath.Join(dir, SwitchesFile)
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the file is there before a switch: %v", err)
	}
	target := site(1).Target
	want := []result.Switch{
		{Target: target, Block: 1, Start: time.Unix(1, 0).UTC(), Took: 2, Ready: 3, Output: "done\n",
			Facts: []result.Fact{{Name: "mtu", Value: "1500"}}},
		{Target: target, Block: 2, Start: time.Unix(2, 0).UTC(), Took: 1, Failed: "exit status 1"},
		{Start: time.Unix(3, 0).UTC(), Took: 1},
	}
	for i := range want {
		w, _, err := Resume(dir)
		if err != nil {
			t.Fatal(err)
		}
		number, err := w.WriteSwitch(want[i])
		if err := errors.Join(err, w.Close()); err != nil || number != i+1 {
			t.Fatalf("switch %d is number %d, %v", i+1, number, err)
		}
		want[i].Schema, want[i].Number = result.SwitchSchema, i+1
	}
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Open(dir); err != nil || !cmp.Equal(want, got.Switches) {
		t.Fatalf("%v, %+v", err, got.Switches)
	}
	if err := os.WriteFile(name, whole[:len(whole)-5], 0o644); err != nil {
		t.Fatal(err)
	}
	w, got, err := Resume(dir)
	if err != nil || !cmp.Equal(want[:2], got.Switches) || len(got.Warnings) != 1 {
		t.Fatalf("cut: %v, %+v", err, got)
	}
	defer w.Close()
	if number, err := w.WriteSwitch(result.Switch{}); err != nil || number != 3 {
		t.Errorf("after the crash: switch %d, %v", number, err)
	}
	for _, s := range []result.Switch{{Target: "x", Block: 1}, {Target: target}, {Block: 1}} {
		if _, err := w.WriteSwitch(s); !errors.Is(err, ErrFormat) {
			t.Errorf("%+v is written: %v", s, err)
		}
	}
}

// TestSwitchCutOff checks that a switch that began and did not end, the first as well as later ones, is read as a
// failed one, and has its line when the directory is written to again. A beginning that a crash brought back counts for
// nothing.
func TestSwitchCutOff(t *testing.T) {
	dir, _ := fill(t, 2)
	begun := filepath.Join(dir, SwitchingFile)
	to := result.Switch{Target: site(1).Target, Block: 1, Start: time.Unix(1, 0).UTC()}
	for number := 1; number <= 3; number++ {
		w, _, err := Resume(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.BeginSwitch(to), w.Close()); err != nil {
			t.Fatal(err)
		}
		beginning, err := os.ReadFile(begun)
		if err != nil {
			t.Fatal(err)
		}
		for _, again := range []string{"open", "resume", "crash", "resume"} {
			var r *Results
			switch again {
			case "open":
				r, err = Open(dir)
			case "crash":
				err = os.WriteFile(begun, beginning, 0o644)
				r, _ = Open(dir)
			default:
				if w, r, err = Resume(dir); err == nil {
					err = w.Close()
				}
			}
			if err != nil || len(r.Switches) != number || r.Switches[number-1].Failed == "" ||
				r.Switches[number-1].Number != number {
				t.Fatalf("%d, %s: %v, %+v", number, again, err, r.Switches)
			}
			warned := slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "has not ended") })
			if first := again == "open"; first && !warned || again == "crash" && warned {
				t.Errorf("%d, %s: the warnings are %q", number, again, r.Warnings)
			}
		}
	}
	w, _, err := Resume(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	number, err := w.WriteSwitch(to)
	if _, left := os.Stat(begun); err != nil || number != 4 || !errors.Is(left, fs.ErrNotExist) {
		t.Errorf("switch %d, %v, %v", number, err, left)
	}
}

// TestSites checks that sites read back as they were written, wherever a crash cut the file; resuming continues after
// the last complete line.
func TestSites(t *testing.T) {
	dir, _ := fill(t, 2)
	name := filepath.Join(dir, SitesFile)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var want []result.Site
	for number := range 2 {
		s := site(number + 1)
		s.Schema = result.SiteSchema
		want = append(want, s)
	}
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for cut := last; cut <= len(whole); cut++ {
		if err := os.WriteFile(name, whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		want, torn := want[:1], cut > last
		if cut == len(whole) {
			want, torn = want[:2], false
		}
		got, err := Open(dir)
		if err != nil || !cmp.Equal(want, got.Sites) || torn != (len(got.Warnings) == 1) {
			t.Fatalf("cut at %d: %v, warnings %v, sites %+v", cut, err, got.Warnings, got.Sites)
		}
		if torn && !strings.Contains(got.Warnings[0], SitesFile+":2: the last line is torn") {
			t.Fatalf("cut at %d: warning %q", cut, got.Warnings[0])
		}
		resumeAndWriteSite(t, dir, len(want)+1)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if got, err := Open(dir); err != nil || len(got.Sites) > 0 || len(got.Runs) != 2 || len(got.Warnings) > 0 {
		t.Errorf("without the file: %+v, %v", got, err)
	}
}

func resumeAndWriteSite(t *testing.T, dir string, number int) {
	t.Helper()
	w, _, err := Resume(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.WriteSite(site(number - 1)); err == nil {
		t.Fatal("a site of the earlier session was written again")
	}
	if err := w.WriteSite(site(number)); err != nil {
		t.Fatal(err)
	}
	if got, err := Open(dir); err != nil || len(got.Sites) != number || len(got.Warnings) > 0 {
		t.Fatalf("after resuming: %+v, %v", got, err)
	}
}

func TestWriteSiteRefuses(t *testing.T) {
	dir, _ := fill(t, 1)
	w, _, err := Resume(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for name, spoil := range map[string]func(*result.Site){
		"a number that is used":   func(s *result.Site) { s.Number = 1 },
		"no number":               func(s *result.Site) { s.Number = 0 },
		"no block":                func(s *result.Site) { s.Block = 0 },
		"a strange target":        func(s *result.Site) { s.Target = "x" },
		"a number that is none":   func(s *result.Site) { s.Values[0].Number = math.NaN() },
		"seconds that are no end": func(s *result.Site) { s.Cleanup = math.Inf(1) },
	} {
		s := site(2)
		if spoil(&s); w.WriteSite(s) == nil {
			t.Errorf("%s was written", name)
		}
	}
	if err := w.WriteSite(site(2)); err != nil {
		t.Fatal(err)
	}
	if got, err := Open(dir); err != nil || len(got.Sites) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestSessions checks that runs and sites belong to the session that was written last; a torn line belongs to a session
// without runs.
func TestSessions(t *testing.T) {
	dir, _ := fill(t, 1)
	name := filepath.Join(dir, SessionsFile)
	var want []result.Session
	for i, version := range []string{"v1", "v2"} {
		w, _, err := Resume(dir)
		if err != nil {
			t.Fatal(err)
		}
		s := result.Session{Start: experiment().Created, Version: version,
			Facts: map[string][]result.Fact{"lab:native": {{Name: "kernel", Value: version}}}}
		r, raw := run(2 + i)
		if err := errors.Join(w.WriteSession(s), w.Append(r, raw), w.WriteSite(site(2+i)), w.Close()); err != nil {
			t.Fatal(err)
		}
		s.Schema, s.Number = result.SessionSchema, i+1
		want = append(want, s)
		file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.WriteString(`{"schema":"knotmeter/sess`)
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Open(dir)
	if err != nil || !cmp.Equal(want, got.Sessions) {
		t.Fatalf("%v (-written +read):\n%s", err, cmp.Diff(want, got.Sessions))
	}
	for i, r := range got.Runs {
		if r.Session != i || got.Sites[i].Session != i {
			t.Errorf("run %s is of session %d, site %d of session %d", r.ID, r.Session, i+1, got.Sites[i].Session)
		}
	}
}

// oneSite returns a line of sites.ndjson with additional fields, which replace its own.
func oneSite(fields string) string {
	return `{"schema":"knotmeter/site/v1","site":1,"target":"lab:native","block":1` + fields + "}\n"
}

func TestReaderErrors(t *testing.T) {
	good, _ := run(1)
	line := func(change func(*result.Run)) string {
		r := withoutEncoding(good)
		change(&r)
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(data) + "\n"
	}
	ok := line(func(*result.Run) {})
	second := func(change func(*result.Run)) string {
		return ok + line(func(r *result.Run) { r.ID = "0002"; change(r) })
	}
	for _, test := range []struct {
		name, file, content string
		is                  error
		text                string
	}{
		{"newer run", RunsFile, second(func(r *result.Run) { r.Schema = "knotmeter/run/v3" }), ErrNewer, RunsFile + ":2: "},
		{"older run", RunsFile, second(func(r *result.Run) { r.Schema = "knotmeter/run/v1" }), ErrOlder, RunsFile + ":2: "},
		{"other schema", RunsFile, second(func(r *result.Run) { r.Schema = "fio/v2" }), ErrFormat, RunsFile + ":2: "},
		{"no schema", RunsFile, ok + "{}\n", ErrFormat, RunsFile + ":2: "},
		{"no JSON", RunsFile, ok + "not json\n" + ok, ErrFormat, RunsFile + ":2: "},
		{"half a line", RunsFile, ok[:50] + "\n" + ok, ErrFormat, RunsFile + ":1: "},
		{"empty line", RunsFile, ok + "\n", ErrFormat, RunsFile + ":2: "},
		{"wrong type", RunsFile, ok + `{"schema":"knotmeter/run/v2","run":7}` + "\n", ErrFormat, RunsFile + ":2: "},
		{"huge number", RunsFile, ok + `{"schema":"knotmeter/run/v2","run":"2","window":1e999}` + "\n",
			ErrFormat, RunsFile + ":2: "},
		{"same run", RunsFile, ok + ok, ErrFormat, "in line 1 already"},
		{"path in run", RunsFile, second(func(r *result.Run) { r.ID = "../../etc" }), ErrFormat, RunsFile + ":2: "},
		{"path in histogram", RunsFile, second(func(r *result.Run) { r.Histograms[0].Name = "../x" }),
			ErrFormat, RunsFile + ":2: "},
		{"unknown target", RunsFile, second(func(r *result.Run) { r.Target = "x" }), ErrFormat, RunsFile + ":2: "},
		{"unknown case", RunsFile, second(func(r *result.Run) { r.Case = "x" }), ErrFormat, RunsFile + ":2: "},
		{"block 0", RunsFile, second(func(r *result.Run) { r.Block = 0 }), ErrFormat, RunsFile + ":2: "},
		{"newer session", SessionsFile, `{"schema":"knotmeter/session/v2"}` + "\n", ErrNewer, SessionsFile + ":1: "},
		{"no session", SessionsFile, "{}\n", ErrFormat, SessionsFile + ":1: "},
		{"session out of order", SessionsFile, `{"schema":"knotmeter/session/v1","session":2}` + "\n",
			ErrFormat, SessionsFile + ":1: "},
		{"newer site", SitesFile, `{"schema":"knotmeter/site/v2"}` + "\n", ErrNewer, SitesFile + ":1: "},
		{"no site", SitesFile, "{}\n", ErrFormat, SitesFile + ":1: "},
		{"no JSON of a site", SitesFile, oneSite("") + "not json\n", ErrFormat, SitesFile + ":2: "},
		{"same site", SitesFile, oneSite("") + oneSite(""), ErrFormat,
			SitesFile + ":2: broken results: site 1 is in line 1 already"},
		{"site 0", SitesFile, oneSite(`,"site":0`), ErrFormat, SitesFile + ":1: "},
		{"site of block 0", SitesFile, oneSite(`,"block":0`), ErrFormat, SitesFile + ":1: "},
		{"site of an unknown target", SitesFile, oneSite(`,"target":"x"`), ErrFormat, SitesFile + ":1: "},
		{"site of an unknown session", SitesFile, oneSite(`,"session":1`), ErrFormat, SitesFile + ":1: "},
		{"site of a negative session", SitesFile, oneSite(`,"session":-1`), ErrFormat, SitesFile + ":1: "},
		{"negative site of a run", RunsFile, second(func(r *result.Run) { r.Site = -1 }), ErrFormat, RunsFile + ":2: "},
		{"session of a run", RunsFile, second(func(r *result.Run) { r.Session = 1 }), ErrFormat, RunsFile + ":2: "},
		{"negative session", RunsFile, second(func(r *result.Run) { r.Session = -1 }), ErrFormat, RunsFile + ":2: "},
		{"newer experiment", ExperimentFile, `{"schema":"knotmeter/experiment/v3","seed":"a word"}`,
			ErrNewer, ExperimentFile + ":1: "},
		{"older experiment", ExperimentFile, `{"schema":"knotmeter/experiment/v1"}`, ErrOlder, ExperimentFile +
			`:1: results of an older version: the schema is "knotmeter/experiment/v1" and this program reads `},
		{"empty experiment", ExperimentFile, ``, ErrFormat, ExperimentFile + ":1: "},
		{"broken experiment", ExperimentFile, "{\n \"schema\": \"knotmeter/experiment/v2\",\n \"seed\": }",
			ErrFormat, ExperimentFile + ":3: "},
		{"seed as text", ExperimentFile, "{\n \"schema\": \"knotmeter/experiment/v2\",\n \"seed\": \"7\"}",
			ErrFormat, ExperimentFile + ":3: "},
		{"no baseline", ExperimentFile, `{"schema":"knotmeter/experiment/v2"}`, ErrFormat, "baseline"},
		{"broken facts", FactsDir + "/lab%3Anative.json", "[\n{]", ErrFormat, "lab%3Anative.json:2: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, _ := fill(t, 0)
			if err := os.WriteFile(filepath.Join(dir, test.file), []byte(test.content), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := Open(dir)
			if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("error %v, wanted %v and %q", err, test.is, test.text)
			}
			if _, _, err := Resume(dir); !errors.Is(err, test.is) {
				t.Errorf("resume: %v, wanted %v", err, test.is)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	dir, _ := fill(t, 1)
	if _, err := Open(dir + "-not"); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), "there is no results directory") {
		t.Errorf("missing directory: %v", err)
	}
	if _, _, err := Resume(dir + "-not"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("resume of a missing directory: %v", err)
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), "not a results directory") {
		t.Errorf("empty directory: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, FactsDir, "lab%3Anative.json")); err != nil {
		t.Fatal(err)
	}
	if got, err := Open(dir); err != nil || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "lab:native") {
		t.Errorf("without facts: %v, %v", got.Warnings, err)
	}
	if err := os.Remove(filepath.Join(dir, RunsFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), RunsFile) {
		t.Errorf("without runs: %v", err)
	}
}

// TestUnknownFields checks that unknown fields, which later versions may add, are ignored.
func TestUnknownFields(t *testing.T) {
	dir, runs := fill(t, 2)
	for _, file := range []string{ExperimentFile, SitesFile, RunsFile} {
		name := filepath.Join(dir, file)
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		data = bytes.ReplaceAll(data, []byte(`"schema"`), []byte(`"mood":{"a":[1]},"schema"`))
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Open(dir)
	if err != nil || !cmp.Equal(runs, got.Runs) || len(got.Sites) != len(runs) {
		t.Errorf("with unknown fields: %v", err)
	}
}

func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	w, err := Create(dir, experiment())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Resume(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("a second writer: %v", err)
	}
	if _, err := Create(dir, experiment()); !errors.Is(err, ErrLocked) {
		t.Errorf("a second creation: %v", err)
	}
	if _, err := Open(dir); err != nil {
		t.Errorf("a reader beside the writer: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w, _, err = Resume(dir)
	if err != nil {
		t.Fatalf("after the first writer closed: %v", err)
	}
	w.Close()
	// A directory that could not be read must not stay locked.
	if err := os.WriteFile(filepath.Join(dir, RunsFile), []byte("x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, _, err := Resume(dir); !errors.Is(err, ErrFormat) {
			t.Errorf("a broken directory: %v", err)
		}
	}
}

func TestCreateRefuses(t *testing.T) {
	dir, _ := fill(t, 1)
	if _, err := Create(dir, experiment()); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("over an experiment: %v", err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "thesis.tex"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(other, experiment()); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "thesis.tex") {
		t.Errorf("over other files: %v", err)
	}
	file := filepath.Join(other, "thesis.tex")
	if _, err := Create(file, experiment()); err == nil {
		t.Error("over a file: no error")
	}
	bad := experiment()
	bad.Baseline = "x"
	path := filepath.Join(other, "new")
	if _, err := Create(path, bad); !errors.Is(err, ErrFormat) {
		t.Errorf("an experiment that cannot be read back: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a refused experiment left its directory")
	}
	empty := t.TempDir()
	w, err := Create(empty, experiment())
	if err != nil {
		t.Fatalf("in an empty directory: %v", err)
	}
	w.Close()
}

func TestAppendRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	w, err := Create(dir, experiment())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, test := range []struct {
		name  string
		spoil func(*result.Run, *[]result.File)
	}{
		{"a number that is none", func(r *result.Run, _ *[]result.File) { r.Values[0].Number = math.NaN() }},
		{"a series that is none", func(r *result.Run, _ *[]result.File) { r.Series[0].Values[0] = math.Inf(1) }},
		{"a path as name", func(r *result.Run, _ *[]result.File) { r.ID = "../x" }},
		{"no name", func(r *result.Run, _ *[]result.File) { r.ID = "" }},
		{"a file with a path", func(_ *result.Run, f *[]result.File) { (*f)[0].Name = "../../escaped" }},
		{"a file without name", func(_ *result.Run, f *[]result.File) { (*f)[0].Name = "" }},
		{"a hidden file", func(_ *result.Run, f *[]result.File) { (*f)[0].Name = "." }},
		{"two files of a name", func(_ *result.Run, f *[]result.File) { (*f)[0].Name = (*f)[1].Name }},
		{"a file like a histogram", func(_ *result.Run, f *[]result.File) { (*f)[0].Name = "latency.hdr" }},
		{"a strange target", func(r *result.Run, _ *[]result.File) { r.Target = "x" }},
		{"another schema", func(r *result.Run, _ *[]result.File) { r.Schema = "knotmeter/run/v1" }},
	} {
		r, raw := run(1)
		test.spoil(&r, &raw)
		if err := w.Append(r, raw); err == nil {
			t.Errorf("%s was appended", test.name)
		}
	}
	if got, err := Open(dir); err != nil || len(got.Runs) != 0 {
		t.Errorf("after refused runs: %d runs, %v", len(got.Runs), err)
	}
	r, raw := run(1)
	if err := w.Append(r, raw); err != nil {
		t.Fatal(err)
	}
	if err := w.Append(r, raw); err == nil {
		t.Error("a run was appended twice")
	}
	if entries, _ := os.ReadDir(filepath.Dir(dir)); len(entries) != 1 {
		t.Errorf("files outside the directory: %v", entries)
	}
}

// TestAppendAfterFailedWrite checks that the part of a line that a full disk leaves is cut off, so that the next line
// does not follow garbage.
func TestAppendAfterFailedWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	w, err := Create(dir, experiment())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	first, raw := run(1)
	if err := w.Append(first, raw); err != nil {
		t.Fatal(err)
	}
	good := w.runs.file
	if w.runs.file, err = os.Open(filepath.Join(dir, RunsFile)); err != nil { // writing to it fails
		t.Fatal(err)
	}
	second, raw := run(2)
	if err := w.Append(second, raw); err == nil {
		t.Fatal("a failed write was not noticed")
	}
	w.runs.file.Close()
	w.runs.file = good
	if err := w.Append(second, raw); err != nil {
		t.Fatalf("the same run after the disk has room again: %v", err)
	}
	if got, err := Open(dir); err != nil || len(got.Runs) != 2 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestWriteNotMeasured(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	given := experiment()
	given.NotMeasured = make([]result.NotMeasured, 0, 8)
	w, err := Create(dir, given)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	a := result.NotMeasured{Target: "lab:native", Case: "*", Reason: "no ESP"}
	b := result.NotMeasured{Target: "*", Case: "pod-pod/other/tcp-rr", Reason: "given up"}
	for _, n := range []result.NotMeasured{a, b, a} {
		if err := w.WriteNotMeasured(n); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Open(dir)
	if err != nil || !cmp.Equal(got.Experiment.NotMeasured, []result.NotMeasured{a, b}) {
		t.Errorf("read back %+v, %v", got.Experiment.NotMeasured, err)
	}
	if len(given.NotMeasured) != 0 || given.NotMeasured[:1][0] != (result.NotMeasured{}) {
		t.Error("the caller's experiment was changed")
	}
}

func TestWriteFactsNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	e := experiment()
	e.Targets = append(e.Targets, result.Target{Name: ".."}, result.Target{Name: "a b"}, result.Target{Name: "a%20b"})
	w, err := Create(dir, e)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, target := range e.Targets {
		if err := w.WriteFacts(target.Name, []result.Fact{{Name: "name", Value: target.Name}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteFacts(strings.Repeat("x", 300), nil); err == nil || !strings.Contains(err.Error(), "label=") {
		t.Errorf("a name that no file can have: %v", err)
	}
	got, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range e.Targets {
		if facts := got.Facts[target.Name]; len(facts) != 1 || facts[0].Value != target.Name {
			t.Errorf("facts of %q are %v", target.Name, facts)
		}
	}
}

func TestNewID(t *testing.T) {
	id := NewID(time.Date(2026, 12, 1, 23, 0, 0, 0, time.UTC))
	if !regexp.MustCompile(`^2026-12-01-[0-9a-f]{4}$`).MatchString(id) {
		t.Errorf("ID %q", id)
	}
}

func TestSafeName(t *testing.T) {
	for name, want := range map[string]string{
		"lab:vxlan?mtu=9000": "lab%3Avxlan%3Fmtu=9000",
		"..":                 "%2E.",
		".hidden":            "%2Ehidden",
		"../../etc/passwd":   "%2E.%2F..%2Fetc%2Fpasswd",
		"lab:native+ipsec":   "lab%3Anative+ipsec",
		"größe":              "gr%C3%B6%C3%9Fe",
		"a\x00b":             "a%00b",
		"":                   "",
	} {
		if got := SafeName(name); got != want {
			t.Errorf("SafeName(%q) = %q, wanted %q", name, got, want)
		}
	}
}
