package main

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
		{"# TYPE apiserver_request_total counter\napiserver_request_total{verb=\"GET\",resource=\"a}b\"} 3\n" +
			"apiserver_request_total{verb=\"POST\"} 1e+02 1700000000\napiserver_request_total_other{} 7\n", 103, ""},
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
	after := func(seconds int) time.Time { return at.Add(time.Duration(seconds) * time.Second) }
	site := func(start int, calls float64) result.Site {
		return result.Site{Start: after(start), Setup: 3, Used: 20, Cleanup: 2, Values: []result.Value{
			{Metric: "pods", Unit: unit.Count, Number: 4}, {Metric: "api-calls", Unit: unit.Count, Number: calls},
		}}
	}
	run := func(start int) result.Run {
		return result.Run{Start: after(start), Setup: 0.5, Window: 9, Cleanup: 0.5}
	}
	notOpened := result.Site{Start: after(50), Setup: 10}
	failed := result.Run{Start: after(60), Invalid: []result.Warning{{Code: "no-pod", Text: "no pod"}}}
	sites := []result.Site{site(0, 30), site(25, 40), notOpened}
	runs := []result.Run{run(3), run(13), run(28), run(38), failed}
	s, err := summarise(sites, runs, 72, 240)
	if err != nil {
		t.Fatal(err)
	}
	want := siteCosts{
		sites: 3, runs: 5, invalid: 1, pods: spread{4, 4, 4}, calls: spread{30, 35, 40}, setup: spread{3, 3, 3},
		cleanup: spread{2, 2, 2}, outside: spread{0, 1, 1}, requests: 80, share: 36. / 60, shareOfAll: 0.5,
	}
	if s != want {
		t.Errorf("got %+v, wanted %+v", s, want)
	}
	for _, line := range []string{
		"| Knotmeter's requests to the API server for a site | 35 | 30 to 40 |",
		"3 sites, 5 runs with windows of 10s, 1 of them invalid: 60 % of the time",
	} {
		if got := s.table("10s"); !strings.Contains(got, line) {
			t.Errorf("%q is not in %s", line, got)
		}
	}
	for _, sites := range [][]result.Site{nil, {notOpened}} {
		if _, err := summarise(sites, runs, 1, 1); err == nil {
			t.Errorf("%d sites without what is wanted are no error", len(sites))
		}
	}
	if _, err := summarise(sites, nil, 1, 1); err == nil {
		t.Error("no run is no error")
	}
}
