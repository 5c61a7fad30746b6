package compare

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/result"
)

// resumedResults returns an experiment of five sessions: the second has other facts, the third has no run, the fourth
// has the facts of the second, and the fifth those of the first.
func resumedResults() result.Results {
	at := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	facts := func(kernel, mtu, free string) map[string][]result.Fact {
		return map[string][]result.Fact{
			"lab:native": {{Name: "name", Value: "a" + free}, {Name: "kernel", Value: kernel},
				{Name: "mtu", Value: "1500"}, {Name: "volume-free", Value: free}},
			"lab:vxlan": {{Name: "kernel", Value: kernel}, {Name: "mtu", Value: mtu},
				{Name: "volume-free", Value: free}, {Name: "speed", Value: result.Unknown}},
		}
	}
	r := result.Results{Experiment: result.Experiment{ID: "x", Baseline: "lab:native"},
		Facts: facts("6.1", "1450", "9 GB")}
	r.Facts["lab:native"] = append(r.Facts["lab:native"], result.Fact{Name: PriceFact, Value: "1/h"})
	for i, s := range []result.Session{
		{Version: "v1", Facts: facts("6.1", "1450", "9 GB")},
		{Version: "v2", Facts: facts("6.2", "1400", "8 GB")},
		{Version: "v3", Facts: facts("6.3", "1400", "7 GB")},
		{Version: "v2", Facts: facts("6.2", "1400", "6 GB")},
		{Version: "v1", Facts: facts("6.1", "1450", "5 GB")},
	} {
		s.Schema, s.Number, s.Start = result.SessionSchema, i+1, at.AddDate(0, i, 0)
		r.Sessions = append(r.Sessions, s)
		for range 2 {
			if s.Number != 3 {
				r.Runs = append(r.Runs, result.Run{Session: s.Number})
			}
		}
	}
	return r
}

func TestSessions(t *testing.T) {
	r := resumedResults()
	got := sessionsOf(r)
	want := []Session{
		{Number: 1, Version: "v1", Changes: []Change{}},
		{Number: 2, Version: "v2", Changes: []Change{
			{"", "knotmeter", "v1", "v2"}, {"lab:native", "kernel", "6.1", "6.2"},
			{"lab:vxlan", "kernel", "6.1", "6.2"}, {"lab:vxlan", "mtu", "1450", "1400"},
		}, Sentence: "Conditions changed between sessions 1 and 2 (from 2027-01-01 08:00 UTC on, 2 runs): knotmeter from " +
			"v1 to v2; " +
			"kernel from 6.1 to 6.2 on lab:native and lab:vxlan; mtu from 1450 to 1400 on lab:vxlan. The verdicts rest on " +
			"the runs of both."},
		{Number: 4, Version: "v2", Changes: []Change{}},
		{Number: 5, Version: "v1", Changes: []Change{
			{"", "knotmeter", "v2", "v1"}, {"lab:native", "kernel", "6.2", "6.1"},
			{"lab:vxlan", "kernel", "6.2", "6.1"}, {"lab:vxlan", "mtu", "1400", "1450"},
		}, Sentence: "Conditions changed between sessions 4 and 5 (from 2027-04-01 08:00 UTC on, 2 runs): knotmeter from " +
			"v2 to v1; " +
			"kernel from 6.2 to 6.1 on lab:native and lab:vxlan; mtu from 1400 to 1450 on lab:vxlan. The verdicts rest on " +
			"the runs of both."},
	}
	for i := range want {
		want[i].Experiment, want[i].Runs, want[i].Start = "x", 2, r.Sessions[want[i].Number-1].Start
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.Runs = r.Runs[:2]
	if got := sessionsOf(r); got != nil {
		t.Errorf("of one session: %+v", got)
	}
}

// TestChangesSince checks that a new session is compared with the last one that has runs.
func TestChangesSince(t *testing.T) {
	r := resumedResults()
	r.Runs = r.Runs[:4]
	for number, want := range map[int]string{
		1: "knotmeter from v2 to v1; kernel from 6.2 to 6.1 on lab:native and lab:vxlan; mtu from 1400 to 1450 on lab:vxlan",
		4: "",
	} {
		if got := ChangesSince(r, r.Sessions[number-1]); got != want {
			t.Errorf("session %d: %q, want %q", number, got, want)
		}
	}
	r.Runs = nil
	if got := ChangesSince(r, r.Sessions[4]); got != "" {
		t.Errorf("without a run: %q", got)
	}
}

func TestChangesInWordsAreFew(t *testing.T) {
	var list []Change
	for _, fact := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		list = append(list, Change{"x", fact, "1", "2"})
	}
	want := "a from 1 to 2 on x; b from 1 to 2 on x; c from 1 to 2 on x; d from 1 to 2 on x; e from 1 to 2 on x; f " +
		"from 1 to 2 on x; " +
		"g from 1 to 2 on x; h from 1 to 2 on x; and 2 more, which the JSON has"
	if got := changesInWords(list); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFactsOverSessions(t *testing.T) {
	r := resumedResults()
	want := map[string][]result.Fact{
		"lab:native": {{Name: "name", Value: "a9 GB"}, {Name: "mtu", Value: "1500"},
			{Name: "volume-free", Value: "9 GB"}, {Name: PriceFact, Value: "1/h"},
			{Name: "kernel", Value: "6.1, from session 2 on 6.2, from session 5 on 6.1"}},
		"lab:vxlan": {{Name: "volume-free", Value: "9 GB"}, {Name: "speed", Value: result.Unknown},
			{Name: "kernel", Value: "6.1, from session 2 on 6.2, from session 5 on 6.1"},
			{Name: "mtu", Value: "1450, from session 2 on 1400, from session 5 on 1450"}},
	}
	if diff := cmp.Diff(want, FactsOverSessions(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	stated := resumedResults()
	stated.Facts["lab:native"] = append(stated.Facts["lab:native"], result.Fact{Name: "link-rate", Value: "1 Gbit/s"},
		result.Fact{Name: audit.FactStatedByUser, Value: "link-rate, kernel"})
	if got := FactsOverSessions(stated)["lab:native"]; result.FactOf(got, "link-rate") != "1 Gbit/s" ||
		result.FactOf(got, audit.FactStatedByUser) != "link-rate, kernel" ||
		result.FactOf(got, "kernel") != result.FactOf(stated.Facts["lab:native"], "kernel") {
		t.Errorf("facts that the user stated, over sessions: %v", got)
	}
	r.Runs = slices.DeleteFunc(r.Runs, func(run result.Run) bool { return run.Session != 2 })
	if got := FactsOverSessions(r); result.FactOf(got["lab:vxlan"], "kernel") != "6.2" ||
		result.FactOf(got["lab:native"], PriceFact) != "1/h" {
		t.Errorf("of runs that are all of the second session: %v", got)
	}
}

// TestCompareOverSessions checks that the comparison lists the sessions, and that differences have the values of all of
// them.
func TestCompareOverSessions(t *testing.T) {
	w, x := typical(), resumedResults()
	for i := range w.runs {
		w.runs[i].Session = 1 + w.runs[i].Block/6
	}
	facts := FactsOverSessions(result.Results{Runs: w.runs, Sessions: x.Sessions, Facts: x.Facts})
	c, err := Compare(result.Results{Experiment: w.e, Sessions: x.Sessions, Runs: w.runs, Facts: facts})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Sessions) != 2 || len(c.Sessions[1].Changes) != 4 {
		t.Fatalf("sessions %+v", c.Sessions)
	}
	want := Difference{Fact: "mtu", Baseline: "1500", Target: "1450, from session 2 on 1400"}
	got, kernel := c.Differences["lab:vxlan"], func(d Difference) bool { return d.Fact == "kernel" }
	if !slices.Contains(got, want) || slices.ContainsFunc(got, kernel) {
		t.Errorf("also differs: %+v", got)
	}
	two, err := compareSeveral(result.Results{Experiment: w.e, Runs: w.runs},
		result.Results{Experiment: w.e, Runs: w.runs, Sessions: x.Sessions})
	if err != nil {
		t.Fatal(err)
	}
	if len(two.Sessions) != 2 || !strings.HasPrefix(two.Sessions[1].Sentence,
		"Experiment "+w.e.ID+"': Conditions changed between sessions 1 and 2 (from 2027-01-01 08:00 UTC on, 42 runs): ") {
		t.Errorf("of two directories: %+v", two.Sessions)
	}
}
