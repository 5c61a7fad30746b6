package report

import (
	"encoding/json"
	"html"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/published"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// withReference returns a comparison of two metrics, and published tables.
func withReference(t *testing.T, names ...string) Input {
	t.Helper()
	in := Input{Comparison: compare.Comparison{Schema: compare.Schema, Baseline: "native", Comparisons: []compare.Row{
		{Case: "pod-pod/other/tcp-stream", Metric: "throughput", Unit: unit.BitPerSecond, Better: metric.Higher,
			Role: result.Primary, Baseline: "native", Target: "vxlan", BaselineMedian: 9.13e9, TargetMedian: 6.4e9},
		{Case: "pod-pod/other/tcp-rr", Metric: "mean", Unit: unit.Second, Better: metric.Lower,
			Role: result.Exploratory, Baseline: "native", Target: "vxlan", BaselineMedian: 45e-6, TargetMedian: 52e-6},
		{Case: "pod-pod/other/tcp-rr", Metric: "p50", Unit: unit.Second, Better: metric.Lower, Role: result.Primary,
			Baseline: "native", Target: "vxlan", BaselineMedian: 40e-6, TargetMedian: compare.Missing()},
	}}}
	for _, name := range names {
		table, err := published.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		in.Reference = append(in.Reference, table)
	}
	return in
}

// inFormat returns the report in the format of a name.
func inFormat(t *testing.T, name string, in Input) string {
	t.Helper()
	for _, f := range Formats() {
		if f.Name == name {
			var b strings.Builder
			if err := f.Write(&b, in); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
	}
	t.Fatalf("no format %s", name)
	return ""
}

func TestPublishedFiguresStandBeside(t *testing.T) {
	in := withReference(t, "daocloud-cni", "constellation-vault")
	for format, wants := range map[string][]string{
		"table": {"PUBLISHED ELSEWHERE", "of other machines and by other methods",
			"nothing here is a verdict", "(daocloud-cni)", "DaoCloud, 2023-05",
			"pod-pod/other/tcp-stream, throughput; published: mean over the time of a run\n  native ", " 9.13 Gbit/s\n",
			"\n  cilium (vxlan)                   8.30 Gbit/s\n", "\n  cilium (vxlan)                        201 µs\n",
			"\npod-pod/other/tcp-rr:request=1024,response=1024, mean over the requests of a run\n",
			"Nothing of it was measured here. It has app/vault/published mean"},
		"markdown": {"### Published elsewhere", "nothing here is a verdict", "- https://github.com/DaoCloud/",
			"time of a run · native | 9.13 Gbit/s |  |", "time of a run · cilium (vxlan) |  | 8.30 Gbit/s |"},
		"html": {`id="reference"`, `href="#reference"`, "nothing here is a verdict",
			"cilium (vxlan)", "here, median", "mean over the requests of a run"},
	} {
		got := inFormat(t, format, in)
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s has no %q:\n%s", format, want, got)
			}
		}
		// Our metric is p50; the published one is a mean.
		if strings.Contains(got, "tcp-rr, p50;") {
			t.Errorf("%s sets a median next to a mean", format)
		}
	}
}

// TestEveryPublishedRow checks that every row of every published table is next to our median of the same case, in the
// same unit, in all formats with published figures.
func TestEveryPublishedRow(t *testing.T) {
	for _, table := range published.All() {
		in := Input{Reference: []published.Table{table}, Comparison: compare.Comparison{Schema: compare.Schema,
			Baseline: "here"}}
		for _, row := range table.Rows {
			volume := strings.HasPrefix(row.Case, "storage/")
			in.Experiment.Cases = append(in.Experiment.Cases, result.Case{Name: row.Case, Load: result.Load{Volume: volume}})
			in.Comparison.Comparisons = append(in.Comparison.Comparisons, compare.Row{Case: row.Case, Metric: row.Metric,
				Unit: row.Unit, Better: row.Better, Baseline: "here", Target: "there",
				BaselineMedian: compare.Number(2 * row.Figures[0].Value), TargetMedian: compare.Number(3 * row.Figures[0].Value)})
		}
		cases := in.casesByName()
		for _, format := range []string{"table", "markdown", "html"} {
			got := spaceless(html.UnescapeString(inFormat(t, format, in)))
			for _, row := range table.Rows {
				shown := func(v float64) string {
					return spaceless(unit.Format(v, cases[row.Case].ShownUnit(row.Unit)))
				}
				wants := []string{spaceless(row.Case + ", " + row.Metric), "here" + shown(2*row.Figures[0].Value)}
				for _, f := range row.Figures {
					wants = append(wants, spaceless(f.Target)+shown(f.Value))
				}
				for _, want := range wants {
					if !strings.Contains(got, want) {
						t.Errorf("%s: %s of %s %s has no %q", table.Name, format, row.Case, row.Metric, want)
					}
				}
			}
			if strings.Contains(got, "Nothingofitwasmeasuredhere") {
				t.Errorf("%s: %s says that nothing was measured", table.Name, format)
			}
		}
	}
}

// spaceless returns a text without HTML tags and white space, so that it does not depend on how lines break.
func spaceless(text string) string {
	text = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(text, "")
	return regexp.MustCompile(`[\s|\x{a0}\x{202f}\x{200b}]+|: ?`).ReplaceAllString(text, "")
}

func TestNothingPublishedUnlessAskedFor(t *testing.T) {
	in := withReference(t)
	for _, f := range []string{"table", "markdown", "json", "html"} {
		if got := inFormat(t, f, in); strings.Contains(strings.ToLower(got), "published elsewhere") ||
			strings.Contains(got, `"reference"`) {
			t.Errorf("%s:\n%s", f, got)
		}
	}
}

func TestPublishedFiguresAsJSON(t *testing.T) {
	var got struct {
		Schema    string
		Baseline  string
		Reference []struct {
			Name, URL, Method string
			Rows              []struct {
				Case, Metric, Unit, Statistic string
				Ours                          string `json:"our_case"`
				Here, Figures                 []published.Figure
			}
		}
	}
	if err := json.Unmarshal([]byte(inFormat(t, "json", withReference(t, "daocloud-cni"))), &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != compare.Schema || got.Baseline != "native" || len(got.Reference) != 1 {
		t.Fatalf("%+v", got)
	}
	r := got.Reference[0]
	if r.Name != "daocloud-cni" || r.URL == "" || len(r.Rows) != 2 {
		t.Fatalf("%+v", r)
	}
	row := r.Rows[1]
	if row.Ours != "pod-pod/other/tcp-rr" || row.Case != "pod-pod/other/tcp-rr:request=1024,response=1024" ||
		row.Unit != "s" || len(row.Here) != 2 || row.Here[1] != (published.Figure{Target: "vxlan", Value: 52e-6}) ||
		len(row.Figures) != 6 {
		t.Errorf("%+v", row)
	}
}

// TestMatchedTargets checks that matched targets are in two columns, with the changes of both and no verdict.
func TestMatchedTargets(t *testing.T) {
	in := withReference(t, "daocloud-cni")
	in.Comparison.Comparisons[0].Change = -0.3
	in.Comparison.Comparisons[0].CI = compare.Interval{Lo: -0.33, Hi: -0.26}
	in.Matches = []published.Match{{Ours: "native", Published: "calico (underlay)"},
		{Ours: "vxlan", Published: "calico (vxlan)"}}
	for format, wants := range map[string][]string{
		"table": {"  vxlan               6.40 Gbit/s -30.0 % [-33.0, -26.0] %  1.37 Gbit/s -64.8 %\n",
			"\n    published as: calico (vxlan)\n",
			"cilium (vxlan)"},
		"markdown": {
			"· vxlan | 6.40 Gbit/s<br>-30.0 % \\[-33.0, -26.0\\] % | 1.37 Gbit/s<br>-64.8 % | calico (vxlan) |"},
		"html": {">calico (vxlan)</td>", "−64.8\u00a0%", "published as"},
	} {
		got := inFormat(t, format, in)
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s has no %q:\n%s", format, want, got)
			}
		}
		if strings.Count(got, "1.37 Gbit/s") != 1 {
			t.Errorf("%s shows a matched figure %d times", format, strings.Count(got, "1.37 Gbit/s"))
		}
	}
	// Without a matched baseline there is no published change.
	in.Matches = in.Matches[1:]
	for _, p := range publications(in)[0].Rows[0].Pairs {
		if p.PublishedChange.Known() || p.TheirChange() != "" {
			t.Errorf("without a matched baseline: %+v", p)
		}
	}
}

// TestNamesakesMatch checks that a target with the name of a published one needs no --match.
func TestNamesakesMatch(t *testing.T) {
	in := withReference(t, "daocloud-cni")
	row := &in.Comparison.Comparisons[0]
	row.Baseline, row.Target, in.Comparison.Baseline = "calico (underlay)", "calico (vxlan)", "calico (underlay)"
	pairs := publications(in)[0].Rows[0].Pairs
	if len(pairs) != 2 || pairs[1].There.Target != "calico (vxlan)" || !strings.Contains(pairs[1].TheirChange(), "64.8") {
		t.Errorf("%+v", pairs)
	}
}

// TestTheSameCaseStandsAlone checks that cases that differ in parameters are shown only if the same case is missing.
func TestTheSameCaseStandsAlone(t *testing.T) {
	row := published.Row{Case: "pod-pod/other/tcp-stream:flows=4", Metric: "throughput", Unit: unit.BitPerSecond}
	similar := median{Case: "pod-pod/other/tcp-stream", Metric: "throughput", Unit: unit.BitPerSecond}
	same, other := similar, similar
	same.Case, other.Metric = row.Case, "rate"
	for _, test := range []struct{ have, want []median }{
		{[]median{similar, same}, []median{same}}, {[]median{similar, other}, []median{similar}}, {[]median{other}, nil},
	} {
		got := counterparts(row, test.have)
		if len(got) != len(test.want) || len(got) > 0 && got[0].Case != test.want[0].Case {
			t.Errorf("of %+v: %+v", test.have, got)
		}
	}
}

// TestAuthorsNames checks that a user's job with the authors' name is shown next to their figures, like the case with
// its options, and in preference to cases that differ in parameters.
func TestAuthorsNames(t *testing.T) {
	table, err := published.Find("constellation-2.6")
	if err != nil {
		t.Fatal(err)
	}
	of := func(names ...string) (all []median) {
		for _, name := range names {
			all = append(all, median{Case: name, Metric: "rate", Unit: unit.PerSecond})
		}
		return all
	}
	const same, similar, own = "storage/randread-4k-qd128", "storage/randread-4k-qd128:file-per-job=10g",
		"storage/job/read_iops"
	found := false
	for _, row := range table.Rows {
		if row.Label != "IOPS Read" {
			continue
		}
		found = true
		for _, test := range []struct{ have, want []median }{
			{of(own), of(own)}, {of(similar, own), of(own)}, {of(same, own), of(same, own)},
			{of("storage/job/write_iops", "storage/job/read"), nil},
		} {
			if got := counterparts(row, test.have); !reflect.DeepEqual(got, test.want) {
				t.Errorf("of %+v: %+v, want %+v", test.have, got, test.want)
			}
		}
	}
	if !found {
		t.Error("the row is not there")
	}
}

// TestOneTargetStandsBeside checks that the medians come from the boxes if there are no comparisons.
func TestOneTargetStandsBeside(t *testing.T) {
	in := withReference(t, "daocloud-cni")
	in.Comparison.Comparisons = nil
	in.Comparison.Boxes = []compare.Box{{Case: "pod-pod/other/tcp-stream",
		Metric: "throughput", Unit: unit.BitPerSecond, Target: "mine", Median: 5e9}}
	if got := inFormat(t, "table", in); !strings.Contains(got, "mine") || !strings.Contains(got, "5.00 Gbit/s") {
		t.Error(got)
	}
}
