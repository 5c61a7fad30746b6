package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
)

// partialSuffix ends the hidden name of a directory that WriteWhole has not completed.
const partialSuffix = ".partial"

// WriteWhole writes a complete results directory or nothing, also if ctx ends: it is made next to path under the hidden
// name .PATH.partial, and renamed when it is complete. It removes what a killed process left under that name. runs
// iterates over the runs and their raw files, none of which is kept in memory. An existing path must be an empty
// directory, else the error wraps [ErrExists].
func WriteWhole(ctx context.Context, path string, e result.Experiment, facts map[string][]result.Fact,
	runs iter.Seq2[result.Run, []result.File],
) (err error) {
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
	temporary := filepath.Join(parent, "."+filepath.Base(path)+partialSuffix)
	if err := removePartial(temporary); err != nil {
		return err
	}
	w, err := Create(temporary, e)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, w.Close())
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temporary))
		}
	}()
	if err := w.writeAll(ctx, facts, runs); err != nil {
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

// removePartial removes what a killed WriteWhole left, unless another process still writes it.
func removePartial(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Stat(filepath.Join(path, ExperimentFile)); err != nil {
		if err := os.Remove(path); err != nil { // it removes an empty directory alone
			return fmt.Errorf("a partial import would have this name; move away what is there: %w", err)
		}
		return nil
	}
	w, err := lockDir(path)
	if err != nil {
		return fmt.Errorf("%s, a partial import: %w", path, err)
	}
	return errors.Join(os.RemoveAll(path), w.Close())
}

// CleanPartials calls report with each directory in parent that a killed [WriteWhole] left, or that a living process
// writes (held), and removes it if report returns true and it is not held. It returns the paths that it removed. A
// missing parent is no error.
func CleanPartials(parent string, report func(path string, held bool) (remove bool)) (removed []string, err error) {
	entries, err := os.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		path, name := filepath.Join(parent, entry.Name()), entry.Name()
		if !entry.IsDir() || !strings.HasPrefix(name, ".") || !strings.HasSuffix(name, partialSuffix) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(path, ExperimentFile)); err != nil {
			continue // another's, or complete and renamed
		}
		w, lockErr := lockDir(path)
		held := errors.Is(lockErr, ErrLocked)
		if lockErr != nil && !held {
			err = errors.Join(err, lockErr)
			continue
		}
		remove := report(path, held)
		if held {
			continue
		}
		if remove {
			if removeErr := os.RemoveAll(path); removeErr != nil {
				err = errors.Join(err, fmt.Errorf("partial import: %w", removeErr))
			} else {
				removed = append(removed, path)
			}
		}
		err = errors.Join(err, w.Close())
	}
	return removed, err
}

// writeAll writes facts and runs. It syncs runs.ndjson once, since the caller discards the directory after an error.
func (w *Writer) writeAll(ctx context.Context, facts map[string][]result.Fact,
	runs iter.Seq2[result.Run, []result.File],
) error {
	for _, t := range w.e.Targets {
		if err := w.WriteFacts(t.Name, facts[t.Name]); err != nil {
			return err
		}
	}
	lines := bufio.NewWriterSize(w.runs.file, 1<<18)
	for run, raw := range runs {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line, err := w.prepareRun(run, raw)
		if err != nil {
			return fmt.Errorf("run %q: %w", run.ID, err)
		}
		w.seen[run.ID] = true
		if _, err := lines.Write(append(line, '\n')); err != nil {
			return w.dir.wrap(err)
		}
	}
	return w.dir.wrap(errors.Join(lines.Flush(), w.runs.file.Sync()))
}
