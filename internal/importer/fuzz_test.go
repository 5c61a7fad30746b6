package importer

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/store"
)

// Each parser has its own fuzz test, seeded with the samples of the other tests.

func FuzzIperf3(f *testing.F)  { fuzz(f, "iperf3") }
func FuzzNetperf(f *testing.F) { fuzz(f, "netperf") }
func FuzzKnb(f *testing.F)     { fuzz(f, "knb") }
func FuzzFio(f *testing.F)     { fuzz(f, "fio") }
func FuzzVault(f *testing.F)   { fuzz(f, "vault-benchmark") }
func FuzzTable(f *testing.F)   { fuzz(f, "csv") }

// fuzz checks that any text gives an error with a place, or runs that the store accepts.
func fuzz(f *testing.F, name string) {
	files, err := filepath.Glob(filepath.Join("testdata", name, "*.*"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no samples: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	format := findFormat(f, name)
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Read(format, []Source{{Name: "file", Data: data}},
			Options{ID: "x", Now: time.Unix(0, 0), Alpha: 0.05, Delta: 0.02})
		if err != nil {
			if !errors.Is(err, ErrFormat) || !strings.HasPrefix(err.Error(), "file") {
				t.Fatalf("error %q", err)
			}
			return
		}
		for r := range got.Runs {
			if len(r.Values) == 0 && r.Valid() {
				t.Errorf("run %s is valid and has no value", r.ID)
			}
			for _, v := range r.Values {
				if math.IsNaN(v.Number) || math.IsInf(v.Number, 0) {
					t.Errorf("%s is %v", v.Metric, v.Number)
				}
			}
			if r.Window < 0 || math.IsNaN(r.Window) || math.IsInf(r.Window, 0) {
				t.Errorf("window %v", r.Window)
			}
		}
		dir := filepath.Join(t.TempDir(), "out")
		if err := store.WriteWhole(t.Context(), dir, got.Experiment, got.Facts, got.Runs); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Open(dir); err != nil {
			t.Fatal(err)
		}
	})
}
