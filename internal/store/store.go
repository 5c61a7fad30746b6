// Package store reads and writes results directories, the only state of an experiment. The runner appends run by run,
// and whatever compares, reports or resumes reads it back.
//
//	experiment.json      the resolved plan, written before the first run; only not_measured and warnings grow
//	facts/<target>.json  the facts of a target in its first session, its name escaped by [SafeName]
//	sessions.ndjson      one line per session, appended and synced before its first run; never rewritten
//	switches.ndjson      one line per switch of targets that are measured in turn, appended and synced; never rewritten
//	switching.json       the switch whose command has begun and not ended, synced before it begins
//	sites.ndjson         one line per site, appended and synced when it is closed; never rewritten
//	runs.ndjson          one line per run, appended and synced as the run ends; never rewritten
//	raw/<run>/           the raw files of a run; <name>.hdr is an encoded histogram
//
// A line counts once its newline is written. Text after the last newline was left by a crash: readers drop it with a
// warning, and resuming cuts it off. The raw files of a run are on disk before its line is, so that a line never refers
// to missing files.
//
// A directory may come from elsewhere: a link, a FIFO or a device at one of the names is an error, and nothing outside
// of the directory is read or written through it. Files that are appended to must have no other name (hard link), and
// replaced files are new files. The directory itself may be given as a link. A file or line of more than 64 MiB is an
// error and is not held in memory.
package store

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The names within a results directory.
const (
	ExperimentFile = "experiment.json"
	SessionsFile   = "sessions.ndjson"
	SwitchesFile   = "switches.ndjson"
	SwitchingFile  = "switching.json"
	SitesFile      = "sites.ndjson"
	RunsFile       = "runs.ndjson"
	FactsDir       = "facts"
	RawDir         = "raw"

	histogramSuffix = ".hdr"
)

// Errors about a results directory. The error about a missing directory or file wraps fs.ErrNotExist.
var (
	ErrFormat = errors.New("broken results")
	ErrNewer  = errors.New("results of a newer version")
	ErrOlder  = errors.New("results of an older version")
	ErrLocked = errors.New("results directory in use")
	ErrExists = errors.New("directory already in use")
)

// NewID returns the name of an experiment that begins now, for a directory such as results/2026-12-01-a1b2.
func NewID(now time.Time) string {
	var b [2]byte
	rand.Read(b[:]) // never fails
	return now.Format(time.DateOnly) + "-" + hex.EncodeToString(b[:])
}

// maxName is the length in bytes of the longest file name that every file system supports, less room for a suffix.
const maxName = 240

// SafeName returns a file name for a name: letters, digits and "-_+.=" stay, all other bytes and a leading dot become
// %XX. Different names give different file names.
func SafeName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if isPlain(c) && (c != '.' || i > 0) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func isPlain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_+.=", c) >= 0
}

// checkName returns an error unless name is a safe file name. what describes it in the error.
func checkName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s has no name", what)
	case SafeName(name) != name:
		return fmt.Errorf("%s %q is not a plain file name (letters, digits, -_+.=)", what, name)
	case len(name) > maxName:
		return fmt.Errorf("%s %q… is longer than %d bytes", what, name[:32], maxName)
	}
	return nil
}
