//go:build unix

package targets

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// ClaimsVariable is the environment variable that names the directory of a machine's claims, for containers that do not
// share /tmp.
const ClaimsVariable = "KNOTMETER_CLAIMS"

// claimsDir returns the directory of the claims. It ignores TMPDIR, because all users must use the same directory.
func claimsDir() string { return cmp.Or(os.Getenv(ClaimsVariable), "/tmp") }

// A MachineClaim is a claim on this machine. Its lock ends with the process, even if the process is killed.
type MachineClaim struct {
	file *os.File
	path string
}

// claimFileName matches the names of claim files.
var claimFileName = regexp.MustCompile(`^knotmeter-claim-[0-9a-f]{16}$`)

// ClaimMachine claims this machine for a plan. The error Is [ErrBusy] if another experiment uses it.
func ClaimMachine(ctx context.Context, p Plan) (_ *MachineClaim, warnings []string, err error) {
	dir := claimsDir()
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	m, err := writeClaim(p.Claim(time.Now()), dir)
	if err != nil {
		return nil, nil, fmt.Errorf("claim this machine: %w; see to it, or name another directory in %s", err, ClaimsVariable)
	}
	found, err := readClaims(dir) // after our claim is written: of two that begin together, at least one sees the other
	if err == nil {
		warnings, err = p.CheckClaims("this machine", found)
	}
	if err != nil {
		return nil, nil, errors.Join(err, m.Close())
	}
	return m, warnings, nil
}

// writeClaim writes a claim file. The file gets its name only when it is locked and complete, so that no other process
// reads or removes it earlier.
func writeClaim(c Claim, dir string) (_ *MachineClaim, err error) {
	var word [8]byte
	rand.Read(word[:]) // never fails
	m := &MachineClaim{path: filepath.Join(dir, "knotmeter-claim-"+hex.EncodeToString(word[:]))}
	fresh := m.path + ".new"
	if m.file, err = os.OpenFile(fresh, os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_NOFOLLOW, 0o644); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(fresh), m.file.Close())
		}
	}()
	if err = m.file.Chmod(0o644); err != nil { // independent of the umask: other users have to read it
		return nil, err
	}
	if err = unix.Flock(int(m.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, err
	}
	if _, err = m.file.WriteString(c.Text() + "\n"); err != nil {
		return nil, err
	}
	err = os.Rename(fresh, m.path)
	return m, err
}

// Close ends the claim. m may be nil.
func (m *MachineClaim) Close() error {
	if m == nil {
		return nil
	}
	return errors.Join(os.Remove(m.path), m.file.Close())
}

// readClaims returns the claims of running processes in a directory. It removes files that killed processes of this
// user left.
func readClaims(dir string) ([]Claim, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []Claim
	for _, e := range entries {
		if !claimFileName.MatchString(e.Name()) {
			continue
		}
		if c, held := readClaim(filepath.Join(dir, e.Name())); held {
			found = append(found, c)
		}
	}
	return found, nil
}

// readClaim reads a claim file; held is false if no process holds its lock any more. Any user may have made the file:
// links are not followed, and the user is the owner of the file, not the one that its text names.
func readClaim(path string) (c Claim, held bool) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return c, false
	}
	defer f.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return c, false
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err == nil && int(stat.Uid) == os.Getuid() {
		_ = os.Remove(path) // on an error the next experiment tries again
	}
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return c, false
	}
	text, _ := io.ReadAll(io.LimitReader(f, maxClaim))
	c, _ = ParseClaim(string(text)) // an invalid claim still counts, with empty fields
	if int(stat.Uid) != os.Getuid() {
		c.By = userName(stat.Uid)
	}
	return c, true
}

// userName describes the user with an ID.
func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return "the user " + u.Username
	}
	return "the user with the ID " + id
}
