package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

func TestSeal(t *testing.T) {
	key, other := []byte("mine"), []byte("yours")
	dir, _ := fill(t, 1)
	sealed := func(want bool) {
		t.Helper()
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if r.SealedBy(key) != want || r.SealedBy(other) || r.SealedBy(nil) {
			t.Errorf("sealed by its key: %v, by another: %v, by none: %v", r.SealedBy(key), r.SealedBy(other), r.SealedBy(nil))
		}
	}
	sealed(false)
	w, _, err := Resume(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Seal(key); err != nil {
		t.Fatal(err)
	}
	sealed(true)

	// A crash between the seal and the experiment leaves the experiment as it was.
	name := filepath.Join(dir, ExperimentFile)
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteNotMeasured(result.NotMeasured{Target: "lab:native", Case: "*", Reason: "no"}); err != nil {
		t.Fatal(err)
	}
	sealed(true)
	after, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		experiment []byte
		want       bool
	}{{before, true}, {append([]byte(" "), after...), false}, {after, true}} {
		if err := os.WriteFile(name, c.experiment, 0o644); err != nil {
			t.Fatal(err)
		}
		sealed(c.want)
	}
}

// The seal of what a later version wrote is that of the file, not of the fields that are known here.
func TestSealOfUnknownFields(t *testing.T) {
	dir, _ := fill(t, 0)
	name := filepath.Join(dir, ExperimentFile)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, append([]byte(`{"mood":1,`), data[1:]...), 0o644); err != nil {
		t.Fatal(err)
	}
	w, _, err := Resume(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Seal([]byte("key")); err != nil {
		t.Fatal(err)
	}
	if r, err := Open(dir); err != nil || !r.SealedBy([]byte("key")) {
		t.Errorf("not sealed, %v", err)
	}
}
