package report

import (
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

// TestPartition checks that a rate of storage is shown with its latencies, and that other cases show only their main
// metric.
func TestPartition(t *testing.T) {
	volume := result.Case{Load: result.Load{Volume: true}}
	all := []group{
		{Case: "storage/randread-4k-qd64", Planned: volume, Metric: "rate", Role: result.Primary, Main: true},
		{Case: "storage/randread-4k-qd64", Planned: volume, Metric: "p50", Role: result.Exploratory},
		{Case: "storage/randread-4k-qd64", Planned: volume, Metric: "p99.9", Role: result.Exploratory},
		{Case: "storage/randrw70-4k-qd16", Planned: volume, Metric: "rate", Role: result.Exploratory, Main: true},
		{Case: "storage/randrw70-4k-qd16", Planned: volume, Metric: "write-p99", Role: result.Exploratory},
		{Case: "pod-pod/other/tcp-rr", Metric: "p99", Role: result.Exploratory},
	}
	names := func(groups []group) (list []string) {
		for _, g := range groups {
			list = append(list, g.Case+" "+g.Metric)
		}
		return list
	}
	primary, hidden := partition(all, result.Primary)
	exploratory, others := partition(all, result.Exploratory)
	if got := names(primary); !slices.Equal(got, []string{"storage/randread-4k-qd64 rate"}) || hidden != 0 {
		t.Errorf("%q, %d hidden", got, hidden)
	}
	want := []string{"storage/randread-4k-qd64 p50", "storage/randrw70-4k-qd16 rate", "storage/randrw70-4k-qd16 write-p99"}
	if got := names(exploratory); !slices.Equal(got, want) || others != 2 {
		t.Errorf("%q, %d others", got, others)
	}
}
