package report

import (
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/report/reporttest"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// limitsStated returns the built experiment with a link whose rate a user stated, and a volume with its VM.
func limitsStated(t *testing.T) Input {
	t.Helper()
	in := network(t)
	in.Facts = map[string][]result.Fact{reporttest.VXLAN: append([]result.Fact{{Name: "link-rate", Value: "10 Gbit/s"},
		{Name: "told", Value: "link-rate"}}, in.Facts[reporttest.VXLAN]...)}
	c, err := compare.Compare(result.Results{Experiment: in.Experiment, Runs: in.Runs, Facts: in.Facts})
	if err != nil {
		t.Fatal(err)
	}
	volume := compare.Limit{Target: reporttest.VXLAN, Resource: audit.VolumeBandwidth, Unit: unit.BitPerSecond,
		Limit: 8 * 60 << 20, Source: "Microsoft, azure-docs, includes/disk-storage-standard-ssd-sizes.md of 2019-03-28",
		Note: "smaller disks go above it for a while on credit", Binding: true, Case: "storage/randread-1m-qd128",
		Metric: "throughput", Median: 8 * 145 << 20, Share: 145. / 60}
	c.Limits = append(c.Limits, volume)
	of := reporttest.Case("storage", "randread-1m-qd128")
	of.Load.Volume = true
	in.Experiment.Cases = append(in.Experiment.Cases, of)
	in.Comparison = c
	return in
}

func TestLimitsGolden(t *testing.T) {
	checkSection(t, limitsStated(t), limits)
}

// TestLimitsOnThePage checks that the page has a row for each limit, in the usual units, and no such section without
// limits.
func TestLimitsOnThePage(t *testing.T) {
	in := limitsStated(t)
	page, root := rendered(t, in)
	if rows := sectionRows(root, "limits"); rows != 2 {
		t.Errorf("%d rows for %d limits", rows, len(in.Comparison.Limits))
	}
	for _, want := range []string{
		"60.0 MiB/s", "145 MiB/s", "242\u00a0%", "the smaller of volume and VM", "told by --fact",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	without := network(t)
	if page, _ := rendered(t, without); strings.Contains(page, `id="limits"`) ||
		strings.Contains(textOf(t, without, TextOptions{Verbose: true}), "STATED LIMITS") ||
		strings.Contains(written(t, formatNamed(t, "json"), without), `"limits"`) {
		t.Error("limits are shown that nothing states")
	}
}
