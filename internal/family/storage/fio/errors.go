package fio

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A volumeError says what stands in the way on a volume, so that others may still be measured, and what to do.
type volumeError struct {
	text  string
	cause error
}

func (e *volumeError) Error() string { return e.text }

// Unwrap makes the error both what happened and something that is reported under not_measured.
func (e *volumeError) Unwrap() []error { return []error{e.cause, result.ErrNotSupported} }

// A failure is a run of fio that came to nothing.
type failure struct {
	host   string
	volume host.Volume
	direct bool
	notes  string // what it printed beside its JSON
	stderr string
	errno  int // of the job; 0 if it says none
	cause  error
}

// explain turns a failure into an error that names cause and remedy.
func (f failure) explain() error {
	said := f.notes + "\n" + f.stderr
	has := func(text string) bool { return strings.Contains(said, text) }
	path := f.volume.Path
	at := func(format string, a ...any) error { return &volumeError{fmt.Sprintf(format, a...), f.because()} }
	switch errno := syscall.Errno(f.errno); {
	case errors.Is(f.cause, host.ErrNoCommand):
		return at("%s", host.Missing(program, f.host))
	case has("not loadable") || has("failed to load engine"):
		return at("fio on %s has no engine %s: install one that was built with it (Debian: apt-get install fio libaio1)",
			f.host, after(said, "engine "))
	case has("does not support O_DIRECT") || has("does not support direct=1"):
		return at("the file system of %s on %s refuses direct I/O, as ramfs and some overlays do: measure a directory on a "+
			"disk; through the page cache it would be memory that is measured", path, f.host)
	case errno == syscall.EINVAL && f.direct:
		return at("%s on %s refuses direct I/O of this size: its blocks may be larger than that; measure it with larger "+
			"blocks", path, f.host)
	case errno == syscall.ENOSPC || errno == syscall.EDQUOT:
		return at("no space is left on %s on %s: free some, or let the file be smaller with size=", path, f.host)
	case errno == syscall.EROFS:
		return at("%s on %s is mounted read-only: mount it for writing, since what is read has to be written first",
			path, f.host)
	case errno == syscall.EACCES || errno == syscall.EPERM:
		return at("%s on %s may not be written by this user: let it, or measure another place", path, f.host)
	case has("is not a directory"), has("file creation disallowed"),
		errno == syscall.ENOENT, errno == syscall.ENODEV, errno == syscall.ENXIO:
		return fmt.Errorf("%s on %s, or the file in it, is not there any more: was the volume removed?: %w",
			path, f.host, f.because())
	case errno == syscall.EIO:
		return fmt.Errorf("%s on %s fails with input/output errors: the disk is broken, or was removed: %w",
			path, f.host, f.because())
	}
	if text := lastWords(said); text != "" {
		return fmt.Errorf("fio on %s says: %s: %w", f.host, text, f.because())
	}
	return f.because()
}

// because is how fio ended.
func (f failure) because() error {
	if f.cause != nil {
		return f.cause
	}
	return fmt.Errorf("fio on %s: %w", f.host, syscall.Errno(f.errno))
}

// after is the word that follows a text.
func after(said, text string) string {
	_, rest, _ := strings.Cut(said, text)
	word, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	return strings.TrimSpace(word)
}

// lastWords is the line in which fio says what is wrong: the first of its own.
func lastWords(said string) string {
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "fio: "); ok {
			return rest
		}
		if strings.HasPrefix(line, "Bad option") {
			return line
		}
	}
	return ""
}
