package report

import (
	"bytes"
	"encoding/csv"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/result"
)

// readBy writes a format into a file, runs a program on it and returns its output. Any message on standard error fails
// the test.
func readBy(t *testing.T, f Format, in Input, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), f.File)
	if err := os.WriteFile(path, []byte(written(t, f, in)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(args[0], append(args[1:], path)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, errs.Bytes())
	}
	if errs.Len() > 0 {
		t.Errorf("%q complains:\n%s", args, errs.Bytes())
	}
	return string(out)
}

// TestBenchstatReadsTheBenchFormat checks that benchstat reads the file without complaint, and its medians are those of
// compare.
func TestBenchstatReadsTheBenchFormat(t *testing.T) {
	in := withoutIncomplete(network(t))
	out := readBy(t, formatNamed(t, "bench"), in, "go", "tool", "benchstat", "-format", "csv", "-col", "target")
	medians := benchstatMedians(t, out)
	compared := 0
	for _, r := range in.Comparison.Comparisons {
		want := map[string]compare.Number{r.Target: r.TargetMedian, r.Baseline: r.BaselineMedian}
		for target, median := range want {
			key := benchCell{benchUnit(result.Value{Metric: r.Metric, Unit: r.Unit}), benchName(r.Case), target}
			got, ok := medians[key]
			if !ok {
				t.Errorf("benchstat shows nothing of %v", key)
				continue
			}
			compared++
			if math.Abs(got-float64(median)) > 1e-9*math.Abs(float64(median)) {
				t.Errorf("%v: the median is %g to benchstat, %g to compare", key, got, float64(median))
			}
		}
	}
	if compared < 40 {
		t.Errorf("only %d medians were compared", compared)
	}
}

// withoutIncomplete removes the case that one target has no runs of, about which benchstat rightly complains.
func withoutIncomplete(in Input) Input {
	const incomplete = "pod-svc/other/tcp-crr"
	in.Runs = slices.DeleteFunc(in.Runs, func(r result.Run) bool { return r.Case == incomplete })
	in.Comparison.Comparisons = slices.DeleteFunc(in.Comparison.Comparisons, func(r compare.Row) bool {
		return r.Case == incomplete
	})
	return in
}

type benchCell struct{ unit, name, target string }

// benchstatMedians reads benchstat's tables: a line of targets, a line of units, then a line per benchmark.
func benchstatMedians(t *testing.T, text string) map[benchCell]float64 {
	t.Helper()
	reader := csv.NewReader(strings.NewReader(text))
	reader.FieldsPerRecord = -1
	rows, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	medians := map[benchCell]float64{}
	var targets, units []string
	for i, row := range rows {
		if row[0] == "" {
			if i > 0 && rows[i-1][0] == "" {
				targets, units = rows[i-1], row
			}
			continue
		}
		for column := 1; column < min(len(row), len(units)); column++ {
			if strings.HasPrefix(units[column], "CI") || units[column] == "vs base" ||
				units[column] == "P" || row[column] == "" {
				continue
			}
			v, err := strconv.ParseFloat(row[column], 64)
			if err != nil {
				t.Fatalf("%q in %q", row[column], row)
			}
			medians[benchCell{units[column], row[0], targets[column]}] = v
		}
	}
	return medians
}

// TestBenchFormatHasNoSyntaxError checks that the format's own library reads every line and the direction of each
// metric.
func TestBenchFormatHasNoSyntaxError(t *testing.T) {
	in := network(t)
	in.Experiment.Suite = "a\nline\x00break"
	in.Comparison.Experiment = "Benchmark: x"
	reader := benchfmt.NewReader(strings.NewReader(written(t, formatNamed(t, "bench"), in)), "bench.txt")
	results := 0
	for reader.Scan() {
		switch record := reader.Result().(type) {
		case *benchfmt.Result:
			results++
			if record.GetConfig("target") == "" || record.GetConfig("seed") != "7" {
				t.Errorf("%s has the configuration %v", record.Name, record.Config)
			}
		case *benchfmt.SyntaxError:
			t.Error(record)
		}
	}
	if err := reader.Err(); err != nil || results == 0 {
		t.Errorf("%d results, %v", results, err)
	}
	units := reader.Units()
	for _, r := range in.Comparison.Comparisons {
		name := benchUnit(result.Value{Metric: r.Metric, Unit: r.Unit})
		if got := units.Get(name, "better"); got == nil || got.Value != string(r.Better) {
			t.Errorf("%s: better=%v, want %s", name, got, r.Better)
		}
	}
}

// openMetricsReader prints a line for each sample that Prometheus' own parser finds.
const openMetricsReader = `
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
for family in text_string_to_metric_families(open(sys.argv[1], newline="").read()):
    for sample in family.samples:
        target = ascii(sample.labels.get("target", "-"))
        print(family.name, family.type, family.unit or "-", target, sample.value, sep="\t")
`

// python returns a Python with the module prometheus_client: that of Debian (package python3-prometheus-client), or the
// first in PATH. It skips the test if there is none.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(name, "-c", "import prometheus_client.openmetrics.parser").Run() == nil {
			return name
		}
	}
	t.Skip("no Python with the module prometheus_client (Debian: python3-prometheus-client; make deps installs it)")
	return ""
}

func TestPrometheusReadsOpenMetrics(t *testing.T) {
	name := python(t)
	f, in := formatNamed(t, "openmetrics"), network(t)
	in.Comparison.Comparisons[0].Target = "a \"b\" \\ c\nd"
	in.Comparison.Comparisons[1].Change = compare.Missing()
	for what, in := range map[string]Input{"experiment": in, "small": small(), "empty": {}} {
		out := readBy(t, f, in, name, "-c", openMetricsReader)
		samples := strings.Count(out, "\n")
		text := written(t, f, in)
		want := 0
		for l := range strings.Lines(text) {
			if !strings.HasPrefix(l, "#") {
				want++
			}
		}
		if samples != want {
			t.Errorf("%s: the parser finds %d samples of %d", what, samples, want)
		}
	}
	lines := strings.Split(readBy(t, f, small(), name, "-c", openMetricsReader), "\n")
	for _, want := range []string{
		"knotmeter_median_throughput_bits_per_second\tgauge\tbits_per_second\t'lab:vxlan'\t6410000000.0",
		"knotmeter_change_ratio\tgauge\tratio\t'lab:vxlan'\t-0.297",
		"knotmeter_blocks\tgauge\t-\t'lab:vxlan'\t11",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no sample %q in\n%s", want, strings.Join(lines, "\n"))
		}
	}
}
