//go:build unix

package claim

import (
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

	"github.com/knotmeter/knotmeter/internal/target"
)

// DirVariable of the environment names the directory of a machine's claims, for containers that do not share /tmp.
const DirVariable = "KNOTMETER_CLAIMS"

// Dir is where the claims of this machine are: the same for all of its users, and not what TMPDIR says.
func Dir() string {
	if dir := os.Getenv(DirVariable); dir != "" {
		return dir
	}
	return "/tmp"
}

// A Machine is the claim on this machine. The kernel ends it with the process, whatever becomes of that.
type Machine struct {
	file *os.File
	path string
}

// claimFile is what the files of claims are called.
var claimFile = regexp.MustCompile(`^knotmeter-claim-[0-9a-f]{16}$`)

// OnMachine claims this machine for a plan, in the directory of claims. An error Is [ErrBusy] if another one uses it.
func OnMachine(ctx context.Context, p target.Plan, dir string) (_ *Machine, warnings []string, err error) {
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	m, err := leave(Of(p, time.Now()), dir)
	if err != nil {
		return nil, nil, fmt.Errorf("claim this machine: %w; see to it, or name another directory in %s", err, DirVariable)
	}
	found, err := claims(dir) // with our own in place, one of two that begin at the same time sees the other
	if err == nil {
		warnings, err = Judge(p, "this machine", found)
	}
	if err != nil {
		return nil, nil, errors.Join(err, m.Close())
	}
	return m, warnings, nil
}

// leave writes a claim. It gets its name only when it is locked and complete, so that nobody sees or removes it
// before.
func leave(c Claim, dir string) (_ *Machine, err error) {
	var word [8]byte
	rand.Read(word[:]) // never fails
	m := &Machine{path: filepath.Join(dir, "knotmeter-claim-"+hex.EncodeToString(word[:]))}
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
func (m *Machine) Close() error {
	if m == nil {
		return nil
	}
	return errors.Join(os.Remove(m.path), m.file.Close())
}

// claims are those that hold in a directory. What this user's killed processes left there is removed.
func claims(dir string) ([]Claim, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []Claim
	for _, e := range entries {
		if !claimFile.MatchString(e.Name()) {
			continue
		}
		if c, holds := look(filepath.Join(dir, e.Name())); holds {
			found = append(found, c)
		}
	}
	return found, nil
}

// look reads the claim in a file, unless the process has ended that held it. The file may be anyone's: a link is not
// followed, and whose it is the file system says.
func look(path string) (c Claim, holds bool) {
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
	text, _ := io.ReadAll(io.LimitReader(f, maxText))
	c, _ = Parse(string(text)) // one that cannot be read says nothing
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
