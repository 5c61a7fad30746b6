package store

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// writeEnv names the directory that the test binary, run again, appends runs and sites to until it is killed.
const writeEnv = "STORE_TEST_WRITE"

// TestKilledWriter checks that the directory can be read and resumed whenever a writer is killed, and that every run
// has its raw files.
func TestKilledWriter(t *testing.T) {
	if dir := os.Getenv(writeEnv); dir != "" {
		writeForever(t, dir)
		return
	}
	dir := filepath.Join(t.TempDir(), "r")
	w, err := Create(dir, experiment())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	had := 0
	for round := range 8 {
		killWriter(t, dir, had, time.Duration(7*round%13)*time.Millisecond)
		got, err := Open(dir)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if len(got.Runs) <= had {
			t.Fatalf("round %d: %d runs, before it %d", round, len(got.Runs), had)
		}
		had = len(got.Runs)
		for i, s := range got.Sites {
			if s.Number != i+1 || s.Setup != site(1).Setup {
				t.Fatalf("round %d: site %d is %+v", round, i+1, s)
			}
		}
		if len(got.Sites) == 0 {
			t.Errorf("round %d: no site", round)
		}
		for i, r := range got.Runs {
			if r.ID != fmt.Sprintf("%04d", i+1) {
				t.Fatalf("round %d: run %d is %s", round, i+1, r.ID)
			}
			if _, err := got.Histogram(r.ID, "latency"); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
			if files, err := got.Raw(r.ID); err != nil || len(files) != 3 {
				t.Errorf("round %d: run %s has raw files %v, %v", round, r.ID, files, err)
			}
		}
	}
}

// killWriter starts a writer and kills it some time after it has added a run.
func killWriter(t *testing.T, dir string, had int, after time.Duration) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledWriter$")
	child.Env = append(os.Environ(), writeEnv+"="+dir)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if got, err := Open(dir); err == nil && len(got.Runs) > had {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the writer writes nothing")
		}
	}
	time.Sleep(after)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := child.Wait(); !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("the writer ended by itself: %v", err)
	}
}

func writeForever(t *testing.T, dir string) {
	w, got, err := Resume(dir)
	if err != nil {
		t.Fatal(err)
	}
	for id, number := len(got.Runs)+1, len(got.Sites)+1; ; id, number = id+1, number+1 {
		if err := w.WriteSite(site(number)); err != nil {
			t.Fatal(err)
		}
		r, raw := run(id)
		r.Start = time.Time{}
		if err := w.Append(r, raw); err != nil {
			t.Fatal(err)
		}
	}
}
