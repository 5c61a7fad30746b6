package store

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/knotmeter/knotmeter/internal/result"
)

// WriteWhole writes a results directory at once, whole or not at all: it is made beside path under a
// name of its own that begins with a dot, and renamed when it is complete. Raw has the raw files of runs by
// their ids. A path that exists must be an empty directory, else the error Is [ErrExists].
func WriteWhole(path string, r result.Results, raw map[string][]result.File) (err error) {
	path = filepath.Clean(path)
	if entries, err := os.ReadDir(path); err == nil && len(entries) > 0 {
		return fmt.Errorf("%w: %s is not empty (it holds %s); choose another --out", ErrExists, path, entries[0].Name())
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
			os.RemoveAll(temporary)
		}
	}()
	if err := os.Chmod(temporary, 0o755); err != nil {
		return fmt.Errorf("results directory: %w", err)
	}
	if err := writeAll(temporary, r, raw); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("results directory: %w", err)
	}
	return syncDir(parent)
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
