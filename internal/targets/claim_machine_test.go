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

// claimIn claims the machine for an experiment, with claims in dir.
func claimIn(t *testing.T, dir, experiment string, share bool) (*MachineClaim, []string, error) {
	t.Helper()
	t.Setenv(ClaimsVariable, dir)
	m, warnings, err := ClaimMachine(t.Context(), Plan{Experiment: experiment, Share: share})
	if err == nil {
		t.Cleanup(func() { _ = m.file.Close() })
	}
	return m, warnings, err
}

func fileNames(t *testing.T, dir string) (names []string) {
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

// TestClaimMachine checks that one experiment may claim a machine for several targets, and that a second experiment is
// refused, or warned if it shares.
func TestClaimMachine(t *testing.T) {
	dir := t.TempDir()
	a, _, err := claimIn(t, dir, "a", false)
	if err != nil {
		t.Fatal(err)
	}
	also, warnings, err := claimIn(t, dir, "a", false)
	if err != nil || len(warnings) != 0 {
		t.Fatalf("another target of the same experiment: %q, %v", warnings, err)
	}
	if _, _, err := claimIn(t, dir, "b", false); !errors.Is(err, ErrBusy) ||
		!strings.Contains(err.Error(), "the experiment a of "+currentUser()) {
		t.Fatalf("%v", err)
	}
	if n := len(fileNames(t, dir)); n != 2 {
		t.Errorf("the one that was refused left something: %q", fileNames(t, dir))
	}
	b, warnings, err := claimIn(t, dir, "b", true)
	if err != nil || len(warnings) != 1 {
		t.Fatalf("%q, %v", warnings, err)
	}
	for _, m := range []*MachineClaim{a, also} {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := claimIn(t, dir, "c", false); !errors.Is(err, ErrBusy) {
		t.Errorf("one that shares is not seen: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if left := fileNames(t, dir); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
	var none *MachineClaim
	if err := none.Close(); err != nil {
		t.Error(err)
	}
}

// TestKilledClaim checks that the file of a killed process is no claim, and that the next experiment of the user
// removes it.
func TestKilledClaim(t *testing.T) {
	dir := t.TempDir()
	m, err := writeClaim(Claim{Experiment: "killed"}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.file.Close(); err != nil { // as the kernel does when a process is killed
		t.Fatal(err)
	}
	next, warnings, err := claimIn(t, dir, "next", false)
	if err != nil || len(warnings) != 0 {
		t.Fatalf("%q, %v", warnings, err)
	}
	if left := fileNames(t, dir); len(left) != 1 || left[0] != filepath.Base(next.path) {
		t.Errorf("%q", left)
	}
}

// TestHostileDirectory checks that in a directory that all users may write to, links are not followed, and other files
// neither block nor are removed.
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
	oversized, err := writeClaim(Claim{Experiment: "oversized", By: "\x1b[2J", Since: time.Now()}, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer oversized.Close()
	if _, err := oversized.file.WriteAt([]byte(strings.Repeat("x", 3*maxClaim)), 0); err != nil {
		t.Fatal(err)
	}
	found, err := readClaims(dir)
	if err != nil || len(found) != 1 || found[0] != (Claim{}) {
		t.Errorf("%+v, %v", found, err)
	}
	if !slices.Equal(fileNames(t, elsewhere), []string{"kept"}) || len(fileNames(t, dir)) != 4 {
		t.Errorf("something was removed: %q, %q", fileNames(t, elsewhere), fileNames(t, dir))
	}
}
