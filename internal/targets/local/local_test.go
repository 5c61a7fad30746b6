//go:build unix

package local

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/targettest"
)

func newTarget(t *testing.T, text string) targets.Target {
	t.Helper()
	spec, err := result.ParseSpec(text)
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestConformance(t *testing.T) {
	for _, options := range []string{"?size=1MiB", "?size=1MiB&volume=fresh"} {
		t.Run("fresh="+strconv.FormatBool(strings.Contains(options, "fresh")), func(t *testing.T) {
			dir := t.TempDir()
			targettest.Suite(t, targettest.Config{
				New:    func(t *testing.T) targets.Target { return newTarget(t, "local:"+dir+options) },
				Offers: []targets.Placement{{Volume: true}},
				Left: func(t *testing.T) []string {
					found, err := filepath.Glob(dir + "/*")
					if err != nil {
						t.Fatal(err)
					}
					return found
				},
			})
		})
	}
}

// TestMachine checks the conformance of this machine as a target that is measured itself.
func TestMachine(t *testing.T) {
	targettest.Suite(t, targettest.Config{
		New: func(t *testing.T) targets.Target {
			d, err := New(result.SpecOf("local:"), "no-agent")
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
		Offers: []targets.Placement{{Machine: true}},
		Left:   func(*testing.T) []string { return nil },
	})
}

func TestSpecs(t *testing.T) {
	for text, want := range map[string]string{
		"local:":                       "",
		"local:?size=1GiB":             "which one?",
		"local:?vault=deploy":          "needs a cluster",
		"local:?vault=ftp://x":         "it is http://HOST:PORT",
		"local:?vault-ask=some":        "it is all or leader",
		"local:var/tmp":                "not an absolute path",
		"local:/tmp/a;b":               "no job file can name it",
		"local:/tmp?size=3":            "from 1MiB on",
		"local:/tmp?size=big":          "from 1MiB on",
		"local:/tmp?volume=old":        "it is reuse",
		"local:/tmp?ip=6":              `no option "ip"`,
		"local:/tmp?size=4GiB&label=x": "",
		"local:?cpu-limit=950m":        "",
		"local:/tmp?cpu-limit=1.5":     "",
		"local:?cpu-limit=9m":          "from 10m",
		"local:?cpu-limit=0.9505":      "from 10m",
		"local:?cpu-limit=95%":         "from 10m",
		"local:?cpu-limit=NaN":         "from 10m",
	} {
		spec, err := result.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = New(spec)
		if (err == nil) != (want == "") || err != nil &&
			(!errors.Is(err, result.ErrSpec) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestUnsupportedPaths(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		dir + "/gone":         "there is no directory",
		file:                  "is no directory",
		dir + "?size=1000TiB": "are to be used",
	}
	if os.Geteuid() == 0 {
		ro := t.TempDir()
		if exec.Command("mount", "-t", "tmpfs", "-o", "ro", "tmpfs", ro).Run() == nil {
			t.Cleanup(func() { _ = exec.Command("umount", ro).Run() })
			tests[ro] = "mounted read-only"
		}
	} else {
		if err := os.Mkdir(dir+"/shut", 0o500); err != nil {
			t.Fatal(err)
		}
		tests[dir+"/shut"] = "may not write"
	}
	for path, want := range tests {
		err := newTarget(t, "local:"+path).Supports(targets.Placement{Volume: true})
		if !errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// TestVolumes checks that all sites of a target share a volume, or each has a new one, as with targets measured in
// turn, and that none is left after Close.
func TestVolumes(t *testing.T) {
	for _, test := range []struct {
		option string
		inTurn bool
	}{{}, {option: "?volume=fresh"}, {inTurn: true}} {
		dir := t.TempDir()
		d, fresh := newTarget(t, "local:"+dir+test.option), test.option != "" || test.inTurn
		if _, err := d.Begin(t.Context(), targets.Plan{InTurn: test.inTurn}); err != nil {
			t.Fatal(err)
		}
		var seen []host.Volume
		for range 2 {
			site, err := targets.OpenOne(t.Context(), d, targets.Placement{Volume: true})
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, site.Volume)
			if err := os.WriteFile(filepath.Join(site.Volume.Path, "knotmeter-data.fio"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := site.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if left, err := os.ReadDir(dir); err != nil || (len(left) == 0) != fresh {
				t.Errorf("%+v: left by a site: %v, %v", test, left, err)
			}
		}
		same := seen[0].Path == seen[1].Path
		if same == fresh || (seen[0].Kept == seen[1].Kept) == fresh || seen[0].Size <= 0 {
			t.Errorf("fresh %t: %+v", fresh, seen)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
}

// TestClean checks that Clean removes unlocked working directories, and nothing else.
func TestClean(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"knotmeter-12-0123abcd/knotmeter-data.fio",
		"knotmeter-13-0123abcd/mine.txt", "knotmeter-x/knotmeter-data.fio", "other/x"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	held, err := newWorkDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := result.ParseSpec("local:" + dir)
	if err != nil {
		t.Fatal(err)
	}
	var doubts []string
	how := targets.Cleaning{DryRun: true, All: true, Found: func(l targets.Leftover) {
		if l.Reason != "" && !l.Removable {
			doubts = append(doubts, l.Name)
		}
	}}
	if removed, err := Clean(t.Context(), []result.Spec{spec}, how); err != nil ||
		len(removed) != 0 || !slices.Equal(doubts, []string{held.path}) {
		t.Errorf("a dry run: %v, %v, left alone %v", removed, err, doubts)
	}
	how.DryRun = false
	removed, err := Clean(t.Context(), []result.Spec{spec}, how)
	if !slices.Equal(removed, []string{filepath.Join(dir, "knotmeter-12-0123abcd")}) ||
		err == nil || !strings.Contains(err.Error(), "mine.txt") {
		t.Errorf("%v, %v", removed, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 4 {
		t.Errorf("left: %v", left)
	}
	if err := held.remove(); err != nil {
		t.Error(err)
	}
}

// TestCleanShared checks that on a shared file system, Clean keeps and names the directories of other machines, because
// locks do not show whether those use them.
func TestCleanShared(t *testing.T) {
	dir, other := t.TempDir(), "another.example"
	ours := filepath.Join(dir, "knotmeter-12-0123abcd-"+machineName())
	theirs, unnamed := filepath.Join(dir, "knotmeter-12-0123abcd-"+other), filepath.Join(dir, "knotmeter-12-0123abcd")
	for _, path := range []string{ours, theirs, unnamed} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	kept := map[string]string{}
	how := targets.Cleaning{Found: func(l targets.Leftover) {
		if !l.Removable {
			kept[l.Name] = l.Reason
		}
	}}
	removed, err := cleanIn(dir, true, how)
	if err != nil || !slices.Equal(removed, []string{ours}) || len(kept) != 2 ||
		!strings.Contains(kept[theirs], "the machine another.example made it") ||
		!strings.Contains(kept[unnamed], "its name has no machine") {
		t.Errorf("removed %q, kept %q, %v", removed, kept, err)
	}
	if removed, err := cleanIn(dir, false, how); err != nil || len(removed) != 2 {
		t.Errorf("where locks tell: removed %q, %v", removed, err)
	}
}

// TestLockHeld checks that a file system without locks is no error, but that its directories may be in use.
func TestLockHeld(t *testing.T) {
	for _, none := range []error{unix.ENOLCK, unix.EOPNOTSUPP, unix.EBADF} {
		held, err := lockHeld(none)
		if held || err != nil || !strings.Contains(lockDoubt("", false, held), "has no locks") {
			t.Errorf("%v: %t, %v", none, held, err)
		}
	}
	if held, err := lockHeld(nil); !held || err != nil || lockDoubt("", false, held) != "" {
		t.Errorf("a lock that was taken: %t, %v", held, err)
	}
	if held, err := lockHeld(unix.EWOULDBLOCK); held || !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("another program's lock: %t, %v", held, err)
	}
}

// TestOnlyOwnFiles checks that a run writes only to its own files: not through a link, nor into a directory that
// replaced its own.
func TestOnlyOwnFiles(t *testing.T) {
	for name, plant := range map[string]func(place, theirs string) error{
		"symbolic link": func(place, theirs string) error {
			return os.Symlink(theirs, filepath.Join(place, "knotmeter-data.fio"))
		},
		"hard link": func(place, theirs string) error { return os.Link(theirs, filepath.Join(place, "knotmeter-data.fio")) },
		"file":      func(place, _ string) error { return os.WriteFile(filepath.Join(place, "mine"), nil, 0o600) },
		"directory": func(place, _ string) error { return os.Mkdir(filepath.Join(place, "knotmeter-data.fio"), 0o700) },
		"exchanged": func(place, theirs string) error {
			return errors.Join(os.Rename(place, place+"-away"), os.Symlink(filepath.Dir(theirs), place))
		},
	} {
		dir, theirs := t.TempDir(), filepath.Join(t.TempDir(), "ledger")
		if err := os.WriteFile(theirs, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		d := newTarget(t, "local:"+dir)
		site, err := targets.OpenOne(t.Context(), d, targets.Placement{Volume: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(plant(site.Volume.Path, theirs), site.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		_, err = targets.OpenOne(t.Context(), d, targets.Placement{Volume: true})
		if err == nil || !strings.Contains(err.Error(), "left as it is") {
			t.Errorf("%s: %v", name, err)
		}
		if err := d.Close(); err == nil || !strings.Contains(err.Error(), "left as it is") {
			t.Errorf("%s: removed: %v", name, err)
		}
		if text, err := os.ReadFile(theirs); err != nil || string(text) != "precious" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

// TestDirectories checks that paths are completed by existing directories.
func TestDirectories(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"disk", "other"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all := []string{dir + "/disk/", dir + "/other/"}
	for typed, want := range map[string][]string{
		"": {"/"}, "relative": {"/"}, dir + "/": all, dir + "/di": all, dir + "/gone/x": nil,
	} {
		if got := Directories(result.Spec{Name: typed}); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", typed, got, want)
		}
	}
}
