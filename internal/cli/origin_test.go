package cli

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

// TestRememberAtOnce checks that programs that create experiments at the same time each add a complete line to their
// common file.
func TestRememberAtOnce(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	var all sync.WaitGroup
	ids := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for _, id := range append(ids, ids...) {
		all.Go(func() {
			if err := rememberExperiment(result.Experiment{ID: id}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	name, digests, err := ownExperiments()
	if err != nil || name != filepath.Join(state, "knotmeter", "experiments") {
		t.Fatalf("%s, %v", name, err)
	}
	for _, id := range ids {
		if d, err := resumeDigest(result.Experiment{ID: id}); err != nil || !slices.Contains(digests, d) {
			t.Errorf("experiment %s is not in %q, %v", id, digests, err)
		}
	}
}
