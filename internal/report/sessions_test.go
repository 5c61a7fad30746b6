package report

import (
	"cmp"
	"html"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/compare"
)

// changedBetweenSessions returns a small experiment, resumed by another version on another kernel.
func changedBetweenSessions() Input {
	in := small()
	at := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	in.Comparison.Sessions = []compare.Session{
		{Experiment: in.Experiment.ID, Number: 1, Start: at, Version: "v1", Runs: 2, Changes: []compare.Change{}},
		{Experiment: in.Experiment.ID, Number: 2, Start: at, Version: "v2", Runs: 2, Changes: []compare.Change{
			{Fact: "knotmeter", Before: "v1", Now: "v2"}, {Target: "lab:vxlan", Fact: "kernel", Before: "6.1", Now: "6.2"},
		}, Sentence: "Conditions changed: knotmeter from v1 to v2; kernel from 6.1 to 6.2 on lab:vxlan."},
	}
	for i := range in.Runs {
		in.Runs[i].Session = 1 + i/2
	}
	return in
}

// inEveryFormat checks that each format has a text, or its own form of it.
func inEveryFormat(t *testing.T, in Input, text string, own map[string]string) {
	t.Helper()
	for _, f := range Formats() {
		want := cmp.Or(own[f.Name], text)
		got := strings.Join(strings.Fields(strings.ReplaceAll(html.UnescapeString(written(t, f, in)), "\\", "")), " ")
		if !strings.Contains(got, want) {
			t.Errorf("%s does not have it:\n%s", f.Name, got)
		}
	}
}

func TestEveryFormatNamesWhatChangedBetweenSessions(t *testing.T) {
	in := changedBetweenSessions()
	inEveryFormat(t, in, "Conditions changed: knotmeter from v1 to v2; kernel from 6.1 to 6.2 on lab:vxlan.",
		map[string]string{
			"openmetrics": `session="2",target="lab:vxlan",fact="kernel",before="6.1",now="6.2"} 1`,
			"svg":         "Conditions changed: knotmeter from v1 to v2; kernel from 6.1 to",
			"csv":         ",2,knotmeter from v1 to v2; kernel from 6.1 to 6.2 on lab:vxlan",
		})
	for _, f := range Formats() {
		if got := written(t, f, small()); strings.Contains(got, "onditions changed") ||
			strings.Contains(got, "session_change") {
			t.Errorf("%s names a change where there is none", f.Name)
		}
	}
	for _, f := range []string{"html", "bench"} {
		if got := written(t, formatNamed(t, f), in); !strings.Contains(got, "v1, then v2") {
			t.Errorf("%s does not name both versions", f)
		}
	}
}

func TestSessionChangesAreFew(t *testing.T) {
	c := changedBetweenSessions().Comparison
	for range maxSessionChanges + 2 {
		c.Sessions = append(c.Sessions, c.Sessions[1])
	}
	got := sessionChanges(c)
	if len(got) != maxSessionChanges+1 || got[maxSessionChanges] != "Conditions changed 3 more times; the JSON has them." {
		t.Errorf("%q", got)
	}
}
