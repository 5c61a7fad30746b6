//go:build unix

package store

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/result"
)

// TestNothingIsFollowed puts a link, a FIFO or another unexpected file at each name of a results directory. Every
// operation that reads or writes it must return an error that names it, and must not touch the file that a link points
// to.
func TestNothingIsFollowed(t *testing.T) {
	open := func(dir string) error {
		_, err := Open(dir)
		return err
	}
	resumed := func(do func(*Writer) error) func(string) error {
		return func(dir string) error {
			w, _, err := Resume(dir)
			if err != nil {
				return err
			}
			defer w.Close()
			return do(w)
		}
	}
	resume := resumed(func(*Writer) error { return nil })
	appended := resumed(func(w *Writer) error {
		r, raw := run(2)
		return w.Append(r, raw)
	})
	left := resumed(func(w *Writer) error {
		return w.WriteNotMeasured(result.NotMeasured{Target: "lab:native", Case: "*", Reason: "x"})
	})
	facts := resumed(func(w *Writer) error { return w.WriteFacts("lab:native", nil) })
	page := func(dir string) error {
		_, err := WriteFile(dir, "report.html", func(w io.Writer) error {
			_, err := io.WriteString(w, "page")
			return err
		})
		return err
	}
	figures := func(dir string) error {
		_, err := WriteFile(dir, "figures/card.svg", func(w io.Writer) error { return nil })
		return err
	}
	histogram := func(dir string) error {
		r, err := Open(dir)
		if err != nil {
			return err
		}
		_, err = r.Histogram("0001", "latency")
		return err
	}
	raw := func(dir string) error {
		r, err := Open(dir)
		if err != nil {
			return err
		}
		_, err = r.Raw("0001")
		return err
	}
	for _, test := range []struct {
		name string
		ops  []func(string) error
	}{
		{"experiment.json", []func(string) error{open, resume}},
		{"experiment.json.new", []func(string) error{left}},
		{"runs.ndjson", []func(string) error{open, resume}},
		{"sessions.ndjson", []func(string) error{open, resume}},
		{"sites.ndjson", []func(string) error{open, resume}},
		{"facts/lab%3Anative.json", []func(string) error{open, resume}},
		{"facts/lab%3Anative.json.new", []func(string) error{facts}},
		{"raw/0001/client.out", []func(string) error{raw}},
		{"raw/0001/latency.hdr", []func(string) error{raw, histogram}},
		{"report.html", []func(string) error{page}},
		{"figures", []func(string) error{figures}},
		{"facts", []func(string) error{open, resume, facts}},
		{"raw", []func(string) error{resume, appended, raw, histogram}},
		{"raw/0001", []func(string) error{raw, histogram}},
		{"raw/0002", []func(string) error{appended}},
	} {
		for kind, put := range unexpectedFiles() {
			t.Run(test.name+" is "+kind, func(t *testing.T) {
				t.Parallel()
				dir, _ := fill(t, 1)
				name := filepath.Join(dir, test.name)
				victim := filepath.Join(t.TempDir(), "victim")
				if err := errors.Join(os.MkdirAll(victim, 0o755),
					os.WriteFile(filepath.Join(victim, "file"), []byte("mine"), 0o644),
					os.RemoveAll(name)); err != nil {
					t.Fatal(err)
				}
				put(t, name, victim)
				if info, err := os.Lstat(name); err == nil && info.IsDir() && !strings.Contains(filepath.Base(name), ".") {
					t.Skip("a directory is what it has to be")
				}
				for _, op := range test.ops {
					if err := op(dir); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), name+" is a") {
						t.Errorf("error %v does not name %s", err, name)
					}
				}
				entries, err := os.ReadDir(victim)
				data, errRead := os.ReadFile(filepath.Join(victim, "file"))
				if err != nil || len(entries) != 1 || errRead != nil || string(data) != "mine" {
					t.Errorf("the victim holds %v and says %q, %v, %v", entries, data, err, errRead)
				}
			})
		}
	}
}

// unexpectedFiles returns functions that create at a name what does not belong into a results directory. Links point to
// the victim, a directory with one file.
func unexpectedFiles() map[string]func(t *testing.T, name, victim string) {
	link := func(to ...string) func(*testing.T, string, string) {
		return func(t *testing.T, name, victim string) {
			if err := os.Symlink(filepath.Join(append([]string{victim}, to...)...), name); err != nil {
				t.Fatal(err)
			}
		}
	}
	return map[string]func(*testing.T, string, string){
		"a link to a file":      link("file"),
		"a link to a directory": link(),
		"a link to nothing":     link("new"),
		"a link inside": func(t *testing.T, name, _ string) {
			own := filepath.Join(filepath.Dir(name), "own")
			if err := errors.Join(os.WriteFile(own, nil, 0o644), os.Symlink("own", name)); err != nil {
				t.Fatal(err)
			}
		},
		"a FIFO": func(t *testing.T, name, _ string) {
			if err := unix.Mkfifo(name, 0o644); err != nil {
				t.Fatal(err)
			}
		},
		"a directory": func(t *testing.T, name, _ string) {
			if err := os.Mkdir(name, 0o755); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// TestTooLong checks that a file or line that is too long is an error that names it; it is never read into memory as a
// whole.
func TestTooLong(t *testing.T) {
	read := func(f func(*Results) error) func(string) error {
		return func(dir string) error {
			r, err := Open(dir)
			if err != nil {
				return err
			}
			return f(r)
		}
	}
	open := read(func(*Results) error { return nil })
	raw := read(func(r *Results) error { _, err := r.Raw("0001"); return err })
	histogram := read(func(r *Results) error { _, err := r.Histogram("0001", "latency"); return err })
	for name, op := range map[string]func(string) error{
		ExperimentFile: open, SessionsFile: open, SitesFile: open, RunsFile: open,
		"facts/lab%3Anative.json": open, "raw/0001/client.out": raw, "raw/0001/latency.hdr": histogram,
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := fill(t, 1)
			name := filepath.Join(dir, name)
			if file, err := os.OpenFile(name, os.O_CREATE, 0o644); err != nil || file.Close() != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(name, 4*maxRead); err != nil { // a sparse file, which uses no disk space
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := op(dir)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "longer than 64 MiB") ||
				!strings.Contains(err.Error(), name) {
				t.Errorf("error %v", err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 10*maxRead {
				t.Errorf("it took %d MiB", took>>20)
			}
		})
	}
}

// TestDirectoryItself checks that the directory itself may be given as a link, and that a FIFO in its place is an error
// and does not block.
func TestDirectoryItself(t *testing.T) {
	dir, runs := fill(t, 1)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	resumeAndAppend(t, link, len(runs))
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(pipe); err == nil || !strings.Contains(err.Error(), "a FIFO") {
		t.Errorf("a FIFO: %v", err)
	}
	empty, whole0 := filepath.Join(t.TempDir(), "empty"), filepath.Join(t.TempDir(), "whole")
	if err := errors.Join(os.Mkdir(empty, 0o755), os.Symlink(empty, whole0)); err != nil {
		t.Fatal(err)
	}
	r, raw := whole()
	if err := WriteWhole(t.Context(), whole0, r.Experiment, r.Facts, withFiles(r, raw)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(empty); err != nil {
		t.Error(err)
	}
}

func TestWriteFile(t *testing.T) {
	dir, _ := fill(t, 0)
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	text := func(text string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, wrote := io.WriteString(w, text)
			return errors.Join(wrote, err)
		}
	}
	for _, content := range []string{"first", "new"} {
		path, err := WriteFile(dir, "report.html", text(content, nil))
		if data, _ := os.ReadFile(path); err != nil || string(data) != content || filepath.Dir(path) != dir {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
	if _, err := WriteFile(dir, "report.html", text("broken", io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "report.html")); err != nil || string(data) != "new" {
		t.Errorf("after an error: %q, %v", data, err)
	}
	if after, err := os.ReadDir(dir); err != nil || len(after) != len(before)+1 {
		t.Errorf("more than the page is left: %v, %v", after, err)
	}
	for range 2 {
		path, err := WriteFile(dir, "figures/card.svg", text("card", nil))
		if data, _ := os.ReadFile(filepath.Join(dir, "figures", "card.svg")); err != nil || string(data) != "card" ||
			path != filepath.Join(dir, "figures", "card.svg") {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
	for _, name := range []string{"../report.html", "a/../report.html", "a/b/c", "/a", "a/", "../a/b"} {
		if _, err := WriteFile(dir, name, text("", nil)); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}

// TestRemoveFiles checks that stale files of a folder are removed; other files, folders and links stay, and a missing
// folder is no error.
func TestRemoveFiles(t *testing.T) {
	dir, _ := fill(t, 0)
	stale := func(name string) bool { return strings.HasPrefix(name, "runs-") }
	if err := RemoveFiles(dir, "figures", stale); err != nil {
		t.Errorf("no folder: %v", err)
	}
	figures := filepath.Join(dir, "figures")
	err := errors.Join(os.MkdirAll(filepath.Join(figures, "runs-folder"), 0o755),
		os.WriteFile(filepath.Join(figures, "runs-old.svg"), nil, 0o644),
		os.WriteFile(filepath.Join(figures, "mine.svg"), nil, 0o644),
		os.Symlink("mine.svg", filepath.Join(figures, "runs-link.svg")), RemoveFiles(dir, "figures", stale))
	var names []string
	entries, readErr := os.ReadDir(figures)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := "mine.svg runs-folder runs-link.svg"; errors.Join(err, readErr) != nil || strings.Join(names, " ") != want {
		t.Errorf("%q are left, want %s; %v, %v", names, want, err, readErr)
	}
}

// TestWriteFileTwice checks that two writers of the same page at the same time both succeed, and the page is complete
// at any time.
func TestWriteFileTwice(t *testing.T) {
	dir, _ := fill(t, 0)
	page := func(text string, meanwhile func()) {
		t.Helper()
		name, err := WriteFile(dir, "report.html", func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			meanwhile()
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if data, err := os.ReadFile(name); err != nil || string(data) != text {
			t.Errorf("%s: %q, %v", text, data, err)
		}
	}
	page("first", func() { page("second", func() {}) })
}

// TestHardLinks checks that a file with a second hard link can be read, but is neither appended to nor truncated.
func TestHardLinks(t *testing.T) {
	for _, name := range []string{SessionsFile, SitesFile, RunsFile} {
		dir, _ := fill(t, 1)
		name, other := filepath.Join(dir, name), filepath.Join(t.TempDir(), "other")
		data, err := os.ReadFile(name)
		data = append(data, "torn"...)
		if err = errors.Join(err, os.WriteFile(name, data, 0o644), os.Link(name, other)); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err != nil {
			t.Error(err)
		}
		if _, _, err := Resume(dir); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), name+" has another name") {
			t.Errorf("error %v", err)
		}
		if after, err := os.ReadFile(other); err != nil || string(after) != string(data) {
			t.Errorf("%s was changed, %v", name, err)
		}
	}
}
