package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/runner"
)

// TestPageThatCannotBeWritten checks that the comparison is printed if the page cannot be written, before the error,
// which names the results.
func TestPageThatCannotBeWritten(t *testing.T) {
	dir := writtenExperiment(t, "2026-11-21-page")
	if err := os.Mkdir(filepath.Join(dir, "report.html"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	gates, page, err := (&options{output: "table"}).conclude(Streams{Out: &out, Err: &errs},
		&experiment{dir: dir}, runner.Summary{Runs: 60})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "vxlan is undecided against native") {
		t.Errorf("the comparison is not printed: %q", out.String())
	}
	if page == nil || !strings.Contains(page.Error(), "the report was not written") ||
		!strings.Contains(page.Error(), "the results are in "+dir) {
		t.Errorf("the error of the page is %v", page)
	}
	if strings.Contains(errs.String(), "Report:") {
		t.Errorf("a report is promised: %q", errs.String())
	}
	if joined := worstError(gates, page); gates == nil || !strings.Contains(joined.Error(), gates.Error()) {
		t.Errorf("with a gate of %v the end is %v", gates, joined)
	}
}
