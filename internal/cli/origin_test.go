package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Programs that need the user's key at once, when there is none yet, all have the same: nobody reads half of one.
func TestUserKeyAtOnce(t *testing.T) {
	for range 100 {
		state := t.TempDir()
		t.Setenv("XDG_STATE_HOME", state)
		var all sync.WaitGroup
		var keys [8][]byte
		for i := range keys {
			all.Go(func() {
				var err error
				if keys[i], err = userKey(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, key := range keys {
			if len(key) != keySize || !bytes.Equal(key, keys[0]) {
				t.Fatalf("keys %x", keys)
			}
		}
		if left, err := os.ReadDir(filepath.Join(state, "knotmeter")); err != nil || len(left) != 1 {
			t.Fatalf("%v is left, %v", left, err)
		}
	}
}
