package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/knotmeter/knotmeter/internal/result"
)

// WriteWhole writes a complete results directory or nothing: it is made next to path under a temporary name that begins
// with a dot, and renamed when it is complete. raw holds the raw files of runs by run ID. An existing path must be an
// empty directory, else the error wraps [ErrExists].
func WriteWhole(path string, r result.Results, raw map[string][]result.File) (err error) {
	path = filepath.Clean(path)
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	if err := checkFree(path); err != nil {
		return err
	}
	parent := filepath.Dir(path)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("results directory: %w", err)
	}
	temporary, err := os.MkdirTemp(parent, "."+filepath.Base(path)+"-")
	if err != nil {
		return fmt.Errorf("results directory: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temporary))
		}
	}()
	if err := os.Chmod(temporary, 0o755); err != nil {
		return fmt.Errorf("results directory: %w", err)
	}
	if err := writeAll(temporary, r, raw); err != nil {
		return err
	}
	// Remove refuses a directory that is not empty, and Rename needs a path that does not exist.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("results directory: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("results directory: %w", err)
	}
	return syncDir(parent)
}

// checkFree returns an error unless path is an empty directory or does not exist.
func checkFree(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("results directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%w: %s is not a directory; choose another --out", ErrExists, path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("results directory: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("%w: %s is not empty (it holds %s); choose another --out", ErrExists, path, entries[0].Name())
	}
	return nil
}

func writeAll(path string, r result.Results, raw map[string][]result.File) error {
	w, err := Create(path, r.Experiment)
	if err != nil {
		return err
	}
	defer w.Close()
	for _, t := range r.Experiment.Targets {
		if err := w.WriteFacts(t.Name, r.Facts[t.Name]); err != nil {
			return err
		}
	}
	for _, run := range r.Runs {
		if err := w.Append(run, raw[run.ID]); err != nil {
			return err
		}
	}
	return w.Close()
}
