// Package store is a results directory: the only state of an experiment. The runner appends to it
// run by run, and whatever compares, reports or resumes reads it back.
//
//	experiment.json      the resolved plan, written before the first run; only not_measured grows
//	facts/<target>.json  the environment of a target in its first session, its name escaped by [SafeName]
//	experiment.seal      vouches for experiment.json by a key that is elsewhere
//	sessions.ndjson      one line per session, appended and synced before its first run; never rewritten
//	switches.ndjson      one line per switch of targets that are measured in turn, appended and synced; never rewritten
//	sites.ndjson         one line per site, appended and synced when it is closed; never rewritten
//	runs.ndjson          one line per run, appended and synced as the run ends; never rewritten
//	raw/<run>/           the files of a run; <name>.hdr is a histogram, encoded
//
// A line counts once its newline is there. What follows the last newline is the
// trace of a crash: readers drop it with a warning, and resuming cuts it off, which is the only time
// that a file gets shorter. The raw files of a run are on disk before its line is, so a line
// never refers to files that are not there.
//
// A directory may come from elsewhere: a link, a FIFO or a device at one of the names is an error, and nothing outside
// of the directory is read or written through it. Files that are appended to have no other name (hard link), and those
// that are replaced are new files. The directory itself may be given as a link. No file or line of more
// than 64 MiB is held in memory: it is an error too.
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
	sealFile       = "experiment.seal"
	SessionsFile   = "sessions.ndjson"
	SwitchesFile   = "switches.ndjson"
	SitesFile      = "sites.ndjson"
	RunsFile       = "runs.ndjson"
	FactsDir       = "facts"
	RawDir         = "raw"

	histogramSuffix = ".hdr"
)

// The ways in which a results directory can be wrong; a directory or file that is not there Is
// fs.ErrNotExist.
var (
	ErrFormat = errors.New("broken results")
	ErrNewer  = errors.New("results of a newer version")
	ErrOlder  = errors.New("results of an older version")
	ErrLocked = errors.New("results directory in use")
	ErrExists = errors.New("directory already in use")
)

// NewID names an experiment that begins now, for a directory such as results/2026-12-01-a1b2.
func NewID(now time.Time) string {
	var b [2]byte
	rand.Read(b[:]) // never fails
	return now.Format(time.DateOnly) + "-" + hex.EncodeToString(b[:])
}

// maxName is the length in bytes of the longest name that every file system takes, less a suffix.
const maxName = 240

// SafeName turns a name into a file name: letters, digits and "-_+.=" stay, all else becomes %XX, as
// does a leading dot. Different names give different file names.
func SafeName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if plain(c) && (c != '.' || i > 0) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_+.=", c) >= 0
}

// checkName returns an error unless name can be a file name as it is.
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
