//go:build unix

package targets

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func take(t *testing.T, dir, experiment string, share bool) (*MachineClaim, []string, error) {
	t.Helper()
	t.Setenv(ClaimsVariable, dir)
	m, warnings, err := ClaimMachine(t.Context(), Plan{Experiment: experiment, Share: share})
	if err == nil {
		t.Cleanup(func() { _ = m.file.Close() })
	}
	return m, warnings, err
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A machine is one experiment's, however many targets that has; a second one is refused, or shares it openly.
func TestClaimMachine(t *testing.T) {
	dir := t.TempDir()
	a, _, err := take(t, dir, "a", false)
	if err != nil {
		t.Fatal(err)
	}
	also, warnings, err := take(t, dir, "a", false)
	if err != nil || len(warnings) != 0 {
		t.Fatalf("another target of the same experiment: %q, %v", warnings, err)
	}
	if _, _, err := take(t, dir, "b", false); !errors.Is(err, ErrBusy) ||
		!strings.Contains(err.Error(), "the experiment a of "+me()) {
		t.Fatalf("%v", err)
	}
	if n := len(files(t, dir)); n != 2 {
		t.Errorf("the one that was refused left something: %q", files(t, dir))
	}
	b, warnings, err := take(t, dir, "b", true)
	if err != nil || len(warnings) != 1 {
		t.Fatalf("%q, %v", warnings, err)
	}
	for _, m := range []*MachineClaim{a, also} {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := take(t, dir, "c", false); !errors.Is(err, ErrBusy) {
		t.Errorf("one that shares is not seen: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if left := files(t, dir); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
	var none *MachineClaim
	if err := none.Close(); err != nil {
		t.Error(err)
	}
}

// What a killed process left holds nothing, and is removed by the next one of its user.
func TestKilledClaim(t *testing.T) {
	dir := t.TempDir()
	m, err := writeClaim(Claim{Experiment: "killed"}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.file.Close(); err != nil { // as the kernel does it
		t.Fatal(err)
	}
	next, warnings, err := take(t, dir, "next", false)
	if err != nil || len(warnings) != 0 {
		t.Fatalf("%q, %v", warnings, err)
	}
	if left := files(t, dir); len(left) != 1 || left[0] != filepath.Base(next.path) {
		t.Errorf("%q", left)
	}
}

// In a directory that all may write to, no one makes us follow, wait, remove or believe.
func TestHostileDirectory(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	kept := filepath.Join(elsewhere, "kept")
	if err := os.WriteFile(kept, []byte(Claim{Experiment: "linked"}.Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	path := func(n string) string { return filepath.Join(dir, "knotmeter-claim-"+strings.Repeat(n, 16)) }
	if err := os.Symlink(kept, path("1")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path("2"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(path("3"), 0o600); err != nil {
		t.Fatal(err)
	}
	loud, err := writeClaim(Claim{Experiment: "loud", By: "\x1b[2J", Since: time.Now()}, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer loud.Close()
	if _, err := loud.file.WriteAt([]byte(strings.Repeat("x", 3*maxClaim)), 0); err != nil {
		t.Fatal(err)
	}
	found, err := claimsIn(dir)
	if err != nil || len(found) != 1 || found[0] != (Claim{}) {
		t.Errorf("%+v, %v", found, err)
	}
	if !slices.Equal(files(t, elsewhere), []string{"kept"}) || len(files(t, dir)) != 4 {
		t.Errorf("something was removed: %q, %q", files(t, elsewhere), files(t, dir))
	}
}
