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

// ClaimsVariable of the environment names the directory of a machine's claims, for containers that do not share /tmp.
const ClaimsVariable = "KNOTMETER_CLAIMS"

// claimsDir is where the claims of this machine are: the same for all of its users, and not what TMPDIR says.
func claimsDir() string { return cmp.Or(os.Getenv(ClaimsVariable), "/tmp") }

// A MachineClaim is the claim on this machine. The kernel ends it with the process, whatever becomes of that.
type MachineClaim struct {
	file *os.File
	path string
}

// claimFile is what the files of claims are called.
var claimFile = regexp.MustCompile(`^knotmeter-claim-[0-9a-f]{16}$`)

// ClaimMachine claims this machine for a plan. An error Is [ErrBusy] if another one uses it.
func ClaimMachine(ctx context.Context, p Plan) (_ *MachineClaim, warnings []string, err error) {
	dir := claimsDir()
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	m, err := writeClaim(p.Claim(time.Now()), dir)
	if err != nil {
		return nil, nil, fmt.Errorf("claim this machine: %w; see to it, or name another directory in %s", err, ClaimsVariable)
	}
	found, err := claimsIn(dir) // with our own in place, one of two that begin at the same time sees the other
	if err == nil {
		warnings, err = p.CheckClaims("this machine", found)
	}
	if err != nil {
		return nil, nil, errors.Join(err, m.Close())
	}
	return m, warnings, nil
}

// writeClaim writes a claim. It gets its name only when it is locked and complete, so that nobody sees or removes it
// before.
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
	if err = m.file.Chmod(0o644); err != nil { // whatever the umask: other users have to read it
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

// Close gives the machine back.
func (m *MachineClaim) Close() error {
	if m == nil {
		return nil
	}
	return errors.Join(os.Remove(m.path), m.file.Close())
}

// claimsIn are those that hold in a directory. What this user's killed processes left there is removed.
func claimsIn(dir string) ([]Claim, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []Claim
	for _, e := range entries {
		if !claimFile.MatchString(e.Name()) {
			continue
		}
		if c, holds := readClaim(filepath.Join(dir, e.Name())); holds {
			found = append(found, c)
		}
	}
	return found, nil
}

// readClaim reads the claim in a file, unless the process has ended that held it. The file may be anyone's: a link is
// not followed, and whose it is the file system says.
func readClaim(path string) (c Claim, holds bool) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return c, false
	}
	defer f.Close()
	var is unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &is); err != nil || is.Mode&unix.S_IFMT != unix.S_IFREG {
		return c, false
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err == nil && int(is.Uid) == os.Getuid() {
		_ = os.Remove(path) // else the next one does
	}
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return c, false
	}
	text, _ := io.ReadAll(io.LimitReader(f, maxClaim))
	c, _ = ParseClaim(string(text)) // one that cannot be read says nothing
	if int(is.Uid) != os.Getuid() {
		c.By = owner(is.Uid)
	}
	return c, true
}

// owner is the user of a file.
func owner(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return "the user " + u.Username
	}
	return "the user with the ID " + id
}
