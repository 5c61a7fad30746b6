package fio

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A volumeError is a problem of one volume and its remedy; other targets can still be measured.
type volumeError struct {
	text  string
	cause error
}

func (e *volumeError) Error() string { return e.text }

// Unwrap returns the cause, and result.ErrNotSupported, so that the case is reported under not_measured.
func (e *volumeError) Unwrap() []error { return []error{e.cause, result.ErrNotSupported} }

// A failure holds what is known about a failed run of fio.
type failure struct {
	host   string
	volume host.Volume
	direct bool
	notes  string // output in addition to its JSON
	stderr string
	errno  int // of the job; 0: none
	cause  error
}

// explain returns an error with cause and remedy.
func (f failure) explain() error {
	output := f.notes + "\n" + f.stderr
	has := func(text string) bool { return strings.Contains(output, text) }
	path := f.volume.Path
	at := func(format string, a ...any) error { return &volumeError{fmt.Sprintf(format, a...), f.underlying()} }
	switch errno := syscall.Errno(f.errno); {
	case errors.Is(f.cause, host.ErrNoCommand):
		return at("%s", host.Missing(program, f.host))
	case has("not loadable") || has("failed to load engine"):
		return at("fio on %s has no engine %s: install one that was built with it (Debian: apt-get install fio libaio1)",
			f.host, wordAfter(output, "engine "))
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
			path, f.host, f.underlying())
	case errno == syscall.EIO:
		return fmt.Errorf("%s on %s fails with input/output errors: the disk is broken, or was removed: %w",
			path, f.host, f.underlying())
	}
	if text := errorLine(output); text != "" {
		return fmt.Errorf("fio on %s says: %s: %w", f.host, text, f.underlying())
	}
	return f.underlying()
}

// underlying returns the cause or, without one, the error of errno.
func (f failure) underlying() error {
	if f.cause != nil {
		return f.cause
	}
	return fmt.Errorf("fio on %s: %w", f.host, syscall.Errno(f.errno))
}

// wordAfter returns the word that follows text.
func wordAfter(output, text string) string {
	_, rest, _ := strings.Cut(output, text)
	word, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	return strings.TrimSpace(word)
}

// errorLine returns the first line in which fio reports an error.
func errorLine(output string) string {
	for line := range strings.Lines(output) {
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
