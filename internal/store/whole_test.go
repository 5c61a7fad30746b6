package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/result"
)

func whole() (result.Results, map[string][]result.File) {
	r := result.Results{
		Experiment: result.Experiment{Schema: result.ExperimentSchema, ID: "x", Baseline: "a",
			Targets: []result.Target{{Name: "a"}, {Name: "b/c"}}, Cases: []result.Case{{Name: "k"}}},
		Facts: map[string][]result.Fact{"a": {{Name: "kernel", Value: "6.1"}}},
		Runs: []result.Run{
			{Schema: result.RunSchema, ID: "0001", Case: "k", Target: "a", Block: 1, Attempt: 1},
			{Schema: result.RunSchema, ID: "0002", Case: "k", Target: "b/c", Block: 1, Attempt: 1},
		},
	}
	return r, map[string][]result.File{"0001": {{Name: "out.txt", Data: []byte("raw")}}}
}

func TestWriteWhole(t *testing.T) {
	parent := t.TempDir()
	empty := filepath.Join(parent, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(parent, "new", "deep"), empty} {
		r, raw := whole()
		if err := WriteWhole(t.Context(), dir, r, raw); err != nil {
			t.Fatal(err)
		}
		got, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Runs) != 2 || len(got.Warnings) > 0 || cmp.Diff(r.Facts["a"], got.Facts["a"]) != "" {
			t.Errorf("%+v", got)
		}
		files, err := got.Raw("0001")
		if err != nil || len(files) != 1 || string(files[0].Data) != "raw" {
			t.Errorf("raw files %v, error %v", files, err)
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("mode %v, error %v", info.Mode(), err)
		}
	}
}

// TestWriteWholeOrNothing checks that an invalid run after a valid one leaves nothing behind.
func TestWriteWholeOrNothing(t *testing.T) {
	parent := t.TempDir()
	r, raw := whole()
	r.Runs[1].Target = "nobody"
	if err := WriteWhole(t.Context(), filepath.Join(parent, "out"), r, raw); !errors.Is(err, ErrFormat) {
		t.Errorf("error %v", err)
	}
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, error %v", entries, err)
	}
	r, raw = whole()
	taken := filepath.Join(parent, "taken")
	if err := errors.Join(os.Mkdir(taken, 0o755), os.WriteFile(filepath.Join(taken, "mine"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{taken, filepath.Join(taken, "mine")} {
		if err := WriteWhole(t.Context(), path, r, raw); !errors.Is(err, ErrExists) {
			t.Errorf("error %v", err)
		}
		if _, err := os.Stat(filepath.Join(taken, "mine")); err != nil {
			t.Fatal(err)
		}
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, error %v", entries, err)
	}
}
