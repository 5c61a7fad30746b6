package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
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

// withFiles returns an iterator over the runs and their raw files.
func withFiles(r result.Results, raw map[string][]result.File) iter.Seq2[result.Run, []result.File] {
	return func(yield func(result.Run, []result.File) bool) {
		for _, run := range r.Runs {
			if !yield(run, raw[run.ID]) {
				return
			}
		}
	}
}

func TestWriteWhole(t *testing.T) {
	parent := t.TempDir()
	empty := filepath.Join(parent, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(parent, "new", "deep"), empty} {
		r, raw := whole()
		if err := WriteWhole(t.Context(), dir, r.Experiment, r.Facts, withFiles(r, raw)); err != nil {
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
	err := WriteWhole(t.Context(), filepath.Join(parent, "out"), r.Experiment, r.Facts, withFiles(r, raw))
	if !errors.Is(err, ErrFormat) {
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
		if err := WriteWhole(t.Context(), path, r.Experiment, r.Facts, withFiles(r, raw)); !errors.Is(err, ErrExists) {
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

// TestWriteWholeDirectories checks that runs without raw files have no directories of their own.
func TestWriteWholeDirectories(t *testing.T) {
	r, raw := whole()
	one := r.Runs[0]
	one.Histograms = nil
	for i := range 500 {
		one.ID = fmt.Sprintf("more-%d", i)
		r.Runs = append(r.Runs, one)
	}
	dir := filepath.Join(t.TempDir(), "results")
	if err := WriteWhole(t.Context(), dir, r.Experiment, r.Facts, withFiles(r, raw)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, RawDir))
	if err != nil || len(entries) >= 500 {
		t.Errorf("%d directories for %d runs: %v", len(entries), len(r.Runs), err)
	}
	got, err := Open(dir)
	if err != nil || len(got.Runs) != len(r.Runs) {
		t.Fatal(err)
	}
	if files, err := got.Raw("more-1"); err != nil || len(files) > 0 {
		t.Errorf("raw files %v, %v", files, err)
	}
}

// TestWriteWholeInterrupted checks that an interruption leaves nothing, and that the next import removes what a kill
// left.
func TestWriteWholeInterrupted(t *testing.T) {
	r, raw := whole()
	parent := t.TempDir()
	dir, partial := filepath.Join(parent, "results"), filepath.Join(parent, ".results.partial")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := WriteWhole(ctx, dir, r.Experiment, r.Facts, withFiles(r, raw)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if err := os.MkdirAll(filepath.Join(partial, RawDir, "0001"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := WriteWhole(t.Context(), dir, r.Experiment, r.Facts, withFiles(r, raw))
	if err == nil || !strings.Contains(err.Error(), "move away what is there") {
		t.Errorf("another's directory is in the way: %v", err)
	}
	if err := os.WriteFile(filepath.Join(partial, ExperimentFile), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WriteWhole(t.Context(), dir, r.Experiment, r.Facts, withFiles(r, raw)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(partial); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v", partial, err)
	}
}
