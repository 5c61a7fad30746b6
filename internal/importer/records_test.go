package importer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// TestRecords compares records with golden files: of real output (iperf3 3.12, netperf 2.7.1, fio 3.33 on one machine),
// and of files in the format of knb, kubestr and vault-benchmark.
func TestRecords(t *testing.T) {
	for _, f := range Formats() {
		t.Run(f.Name, func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join("testdata", f.Name, "*.*"))
			if err != nil || len(files) == 0 {
				t.Fatalf("no samples: %v", err)
			}
			var got strings.Builder
			for _, file := range files {
				fmt.Fprintf(&got, "== %s\n", filepath.Base(file))
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				read, err := f.Read(filepath.Base(file), data)
				if err != nil {
					fmt.Fprintf(&got, "error: %v\n", err)
				}
				for _, u := range read.Unread {
					fmt.Fprintf(&got, "unread: line %d (%s)\n", u.Line, u.Why)
				}
				for r := range read.all() {
					describe(&got, r)
				}
			}
			golden.Check(t, "testdata/"+f.Name+".golden", got.String())
		})
	}
}

func describe(b *strings.Builder, r Record) {
	fmt.Fprintf(b, "%s target=%q block=%d tool=%s window=%.4g metric=%q",
		r.name(), r.Target, r.Block, r.Tool, r.Window, r.Metric)
	if !r.Start.IsZero() {
		fmt.Fprintf(b, " start=%s", r.Start.UTC().Format(time.RFC3339))
	}
	fmt.Fprintf(b, " place=%q\n", r.Place)
	for _, v := range r.Values {
		fmt.Fprintf(b, "  %s %s %s\n", v.Metric, unit.Format(v.Number, v.Unit), v.Better)
	}
	for _, h := range r.Histograms {
		fmt.Fprintf(b, "  histogram %s of %d\n", h.Name, h.Count)
	}
	for _, f := range r.Environment {
		fmt.Fprintf(b, "  environment %s: %s\n", f.Name, f.Value)
	}
	for _, f := range r.Facts {
		fmt.Fprintf(b, "  fact %s: %s\n", f.Name, f.Value)
	}
	for _, w := range r.Invalid {
		fmt.Fprintf(b, "  invalid: %s: %s\n", w.Code, w.Text)
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(b, "  warning: %s: %s\n", w.Code, w.Text)
	}
}
