package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
)

func status(err error) int {
	if err == nil {
		return statusDone
	}
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.status
	}
	return statusUsage
}

func TestGateStatus(t *testing.T) {
	gate := func(o compare.Outcome) compare.Gated {
		return compare.Gated{Outcome: o, Sentence: "It " + string(o) + "."}
	}
	passed, failed, open := gate(compare.Passed), gate(compare.Failed), gate(compare.Open)
	for _, test := range []struct {
		gates []compare.Gated
		want  int
		text  string
	}{
		{nil, 0, ""},
		{[]compare.Gated{passed, passed}, 0, ""},
		{[]compare.Gated{passed, open}, 4, "a gate is open:\nIt open."},
		{[]compare.Gated{open, failed, passed, failed}, 3, "a gate failed:\nIt failed.\nIt failed."},
	} {
		err := gateStatus(compare.Comparison{Gates: test.gates})
		if status(err) != test.want || err != nil && err.Error() != test.text {
			t.Errorf("%v: status %d, %v", test.gates, status(err), err)
		}
	}
}

// Of two ends the documented one counts, and both are told.
func TestWorst(t *testing.T) {
	end := func(status int) error {
		if status == 0 {
			return nil
		}
		return &statusError{status, errors.New("end")}
	}
	for _, test := range []struct{ outcome, gates, want int }{
		{0, 0, 0}, {2, 0, 2}, {0, 3, 3}, {0, 4, 4}, {2, 3, 3}, {2, 4, 2}, {130, 3, 130}, {130, 4, 130}, {130, 0, 130},
	} {
		err := worst(end(test.outcome), end(test.gates))
		if status(err) != test.want {
			t.Errorf("%d and %d give %d, want %d", test.outcome, test.gates, status(err), test.want)
		}
		if test.outcome > 0 && test.gates > 0 && strings.Count(err.Error(), "end") != 2 {
			t.Errorf("%d and %d: %v", test.outcome, test.gates, err)
		}
	}
}

func TestCheckGates(t *testing.T) {
	e := planned()
	for gate, want := range map[string]string{
		"pod-pod/other/tcp-rr p50 <= +5%":        "",
		"*/tcp-crr <= 1 ms":                      "",
		"pod-pod/* p50 <= 1 ms on a":             "",
		"pod-pod/same/* p99 >= -3% on c":         "",
		"node-node/* p50 <= 1 ms":                "matches no case that is measured on every target",
		"pod-pod/* p50 <= +5% on a":              "about none of the targets a, b, c",
		"pod-pod/* p50 <= 1 ms on lab:a":         "about none of the targets",
		"pod-pod/other/tcp-rr p50 less than 5 %": "not a gate",
	} {
		e.Gates = []string{gate}
		err := checkGates(e)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", gate, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "--gate: ")):
			t.Errorf("%s: %v, want %q", gate, err, want)
		}
	}
}

// A judgement that is not the plan's says so, and leaves the rest as it is.
func TestJudgement(t *testing.T) {
	e := planned()
	e.Gates = []string{"*/tcp-rr p50 <= +5%"}
	for _, test := range []struct {
		judgement judgement
		want      string
	}{
		{judgement{}, ""},
		{judgement{gates: e.Gates}, ""},
		{judgement{allPairs: true}, "without comparing all pairs;"},
		{judgement{gates: []string{"*/tcp-rr p50 <= +9%"}, allPairs: true}, "without comparing all pairs and these gates;"},
	} {
		got := e
		remark, err := test.judgement.onto(&got)
		if err != nil || !strings.Contains(remark, test.want) || (test.want == "") != (remark == "") {
			t.Errorf("%+v: %q, %v", test.judgement, remark, err)
		}
		if got.Design.AllPairs != test.judgement.allPairs || len(got.Gates) != 1 {
			t.Errorf("%+v: %+v, %v", test.judgement, got.Design, got.Gates)
		}
	}
}
