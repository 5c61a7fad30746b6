package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

func TestRequestsIn(t *testing.T) {
	for _, test := range []struct {
		text string
		want float64
		says string
	}{
		{"# TYPE apiserver_request_total counter\napiserver_request_total{verb=\"GET\",resource=\"a}b\"} 3\napiserver_request_total{verb=\"POST\"} 1e+02 1700000000\napiserver_request_total_other{} 7\n", 103, ""},
		{"up 1\n", 0, "have no apiserver_request_total"},
		{"apiserver_request_total{verb=\"GET\"}\n", 0, "no number"},
		{"apiserver_request_total{verb=\"GET\"} many\n", 0, "many"},
	} {
		got, err := requestsIn(test.text)
		if got != test.want || (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: %v, %v", test.text, got, err)
		}
	}
}

func TestSummarise(t *testing.T) {
	at := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	run := func(i int, calls float64) result.Run {
		return result.Run{Start: at.Add(time.Duration(i) * 14 * time.Second), Setup: 2.5, Window: 10, Cleanup: 1.5, Values: []result.Value{
			{Metric: "pods", Unit: unit.Count, Number: 2}, {Metric: "api-calls", Unit: unit.Count, Number: calls},
		}}
	}
	notOpened := result.Run{Start: at.Add(42 * time.Second), Setup: 8, Invalid: []result.Warning{{Code: "no-pod", Text: "no pod"}}}
	s, err := summarise([]result.Run{run(0, 12), run(1, 14), run(2, 13), notOpened}, 60, 200)
	if err != nil {
		t.Fatal(err)
	}
	if s.runs != 4 || s.invalid != 1 || s.pods.median != 2 || s.calls != (spread{12, 13, 14}) || s.requests != 50 || s.outside.most != 8 {
		t.Errorf("%+v", s)
	}
	if s.share != 30.0/50 || s.shareOfAll != 0.5 {
		t.Errorf("shares of the time: %v, %v", s.share, s.shareOfAll)
	}
	if got := s.table("10s"); !strings.Contains(got, "| requests of ours to the API server | 13 | 12 to 14 |") || !strings.Contains(got, "60 % of the time") {
		t.Error(got)
	}
	for _, runs := range [][]result.Run{nil, {notOpened}} {
		if _, err := summarise(runs, 1, 1); err == nil {
			t.Errorf("%d runs without what is wanted are no error", len(runs))
		}
	}
}
