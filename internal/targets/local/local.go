//go:build unix

// Package local is this machine as a target: local:<dir>, where storage is measured without a cluster, and
// local:, from where applications are asked.
//
// It makes a directory of its own within the one that is named, tells the facts of what it is on, and removes it again;
// that of a program that was killed is found by its name.
package local

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/family/app/vault"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// New reads the text of a local target; agent is the command line of this program's agent, which asks applications. It
// touches nothing yet. Every error Is targets.ErrSpec.
func New(spec targets.Spec, agent ...string) (targets.Target, error) {
	d, err := parse(spec)
	if err != nil {
		return nil, err
	}
	d.agent = agent
	return d, nil
}

// Directory is a directory as a target, with everything as it is without options. Every error Is targets.ErrSpec.
func Directory(path string) (targets.Target, error) {
	return New(targets.Spec{Kind: "local", Name: path, Text: "local:" + path})
}

// Most that is used of a file system unless somebody says otherwise: of a larger file a run would not tell more
// than it takes longer to write.
const mostUsed = 16 << 30

// A directory is a local target.
type directory struct {
	path  string         // empty: none, and no storage
	vault vault.Instance // to ask
	agent []string
	size  int64 // that may be used; 0: half of what is free, up to mostUsed
	fresh bool  // a file for each site
	claim *targets.MachineClaim
	held  *workDir // that of all sites, unless fresh
}

// Supports looks at the directory.
func (d *directory) Supports(p targets.Placement) error {
	if err := p.Check(); err != nil {
		return err
	}
	switch {
	case p.Path == "" && !p.Volume && !p.AsksAPI():
		return d.supportsClient(p)
	case !p.Volume:
		return result.NotSupported("this machine is a place for storage and to ask applications from, " +
			"and for nothing else; network paths without a cluster are lab:")
	case d.path == "":
		return result.NotSupported("which directory? for example local:/var/tmp")
	}
	if err := d.there(); err != nil {
		return err
	}
	switch err := unix.Access(d.path, unix.W_OK); {
	case errors.Is(err, unix.EROFS):
		return result.NotSupported(fmt.Sprintf("%s is on a file system that is mounted read-only: "+
			"mount it for writing, since what is read has to be written first", d.path))
	case err != nil:
		return result.NotSupported(fmt.Sprintf("this user may not write to %s: let it, or name another directory", d.path))
	}
	if _, err := d.usable(); err != nil {
		return err
	}
	return CheckProgram(p.Program)
}

// there says why there is no directory where one is named.
func (d *directory) there() error {
	info, err := os.Stat(d.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return result.NotSupported(fmt.Sprintf("there is no directory %s: make it, or name another", d.path))
	case err != nil:
		return result.NotSupported(fmt.Sprintf("%s cannot be looked at: %v", d.path, err))
	case !info.IsDir():
		return result.NotSupported(fmt.Sprintf("%s is no directory: name the directory that a file system is mounted on",
			d.path))
	}
	return nil
}

// Begin looks whether what the target names is there, the directory or the Vault, and claims the machine. What may be
// unmounted between sites has new files in each.
func (d *directory) Begin(ctx context.Context, p targets.Plan) (warnings []string, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	d.fresh = d.fresh || p.InTurn
	if d.path != "" {
		if err := d.there(); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(p.Placements, func(p targets.Placement) bool { return p.Application != "" }) {
		e, err := d.vault.Endpoint(vault.Here())
		if err == nil {
			err = vault.CheckReachable(ctx, e)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(p.Placements) > 0 {
		d.claim, warnings, err = targets.ClaimMachine(ctx, p)
	}
	return warnings, err
}

// usable is how many bytes a run may use.
func (d *directory) usable() (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(d.path, &fs); err != nil {
		return 0, result.NotSupported(fmt.Sprintf("the free space on %s is unknown: %v", d.path, err))
	}
	free := int64(fs.Bavail) * int64(fs.Bsize)
	if free > 0 && d.size > free || free < 1<<20 {
		return 0, result.NotSupported(fmt.Sprintf("%s has %s free, and %s are to be used: free some, or give a smaller size=",
			d.path, unit.Format(float64(free), unit.Byte), unit.Format(float64(max(d.size, 1<<20)), unit.Byte)))
	}
	if d.size > 0 {
		return d.size, nil
	}
	return min(free/2, mostUsed), nil
}

// Facts are those of the directory, of what it is on, and of this machine.
func (d *directory) Facts(context.Context) ([]result.Fact, error) {
	files := "one for all blocks"
	if d.fresh {
		files = "a new one for each block"
	}
	used := result.Unknown
	if n, err := d.usable(); err == nil {
		used = unit.Format(float64(n), unit.Byte)
	}
	if d.path == "" {
		return append([]result.Fact{{Name: "kind", Value: "local"}}, machine.Facts()...), nil
	}
	facts := []result.Fact{{Name: "kind", Value: "local"}, {Name: "directory", Value: d.path},
		{Name: "volume-used", Value: used}, {Name: "volume-file", Value: files}}
	return append(append(facts, machine.Volume(d.path)...), machine.Facts()...), nil
}

// Open makes this machine the client of all places, each with what it measures: one directory, and one Vault.
func (d *directory) Open(ctx context.Context, placements []targets.Placement) (targets.Site, error) {
	if ctx.Err() != nil {
		return targets.Site{}, ctx.Err()
	}
	here := host.NewScoped(host.NewLocal("local", netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil, d.agent...))
	crew := agent.NewCrew()
	client := crew.On(here)
	var work *workDir
	var site targets.Site
	for _, p := range placements {
		place := targets.Place{Err: d.Supports(p)}
		switch {
		case place.Err != nil:
		case !p.Volume:
			place = d.caller(p)
		default:
			if work == nil {
				work, place.Err = d.workDir()
			}
			if place.Err == nil {
				place.Volume, place.Err = d.volume(work)
			}
		}
		if place.Err == nil {
			place.Client, place.Shared = client, true
		}
		site.Places = append(site.Places, place)
	}
	site.Close = func(context.Context) error {
		crew.Close()
		here.End()
		if d.fresh && work != nil {
			return work.remove()
		}
		return nil
	}
	return site, nil
}

// volume is a directory as what is measured, and stays as it is from run to run.
func (d *directory) volume(at *workDir) (host.Volume, error) {
	size, err := d.usable()
	if err == nil {
		err = at.check()
	}
	if err != nil {
		return host.Volume{}, err
	}
	return host.Volume{Path: at.path, Size: size, Kept: at.path}, nil
}

// CheckProgram is nil if this machine has a program that runs start, or if they start none.
func CheckProgram(program string) error {
	if program == "" {
		return nil
	}
	if _, err := exec.LookPath(program); err != nil {
		return result.NotSupported(host.Missing(program, "this machine"))
	}
	return nil
}

// supportsClient says whether this machine can be a client: a description says where an application is, Vault must be
// given.
func (d *directory) supportsClient(p targets.Placement) error {
	if len(d.agent) == 0 {
		return result.NotSupported("this machine is not asked from here")
	}
	return cmp.Or(d.vault.Supports(vault.Here(), p), CheckProgram(p.Program))
}

// Applications is a Vault that was given.
func (d *directory) Applications() map[string]host.Destination {
	return d.vault.Applications(vault.Here())
}

// caller is this machine as a client.
func (d *directory) caller(p targets.Placement) targets.Place {
	place := targets.Place{Facts: []result.Fact{{Name: "client", Value: "this machine"}}}
	if p.Application != "" {
		place.Endpoint, place.Err = d.vault.Endpoint(vault.Here())
	}
	return place
}

// workDir is where the runs of a site work: a new directory, or that of the target.
func (d *directory) workDir() (*workDir, error) {
	if d.fresh {
		return newWorkDir(d.path)
	}
	var err error
	if d.held == nil {
		d.held, err = newWorkDir(d.path)
	}
	return d.held, err
}

// Close removes what the target keeps from site to site, and gives the machine back.
func (d *directory) Close() error {
	defer d.claim.Close() // the lock ends with the process at the latest
	if d.held == nil {
		return nil
	}
	return d.held.remove()
}

// A workDir is a directory that a run may write all over, locked by who made it.
type workDir struct {
	path string
	lock *os.File
}

// names are what such directories are called: by the process that made them, a word that no other has, and on a file
// system that other machines may use, the machine of the process.
var names = regexp.MustCompile(`^knotmeter-[0-9]+-[0-9a-f]{8}(?:-([A-Za-z0-9._-]+))?$`)

func newWorkDir(parent string) (*workDir, error) {
	var word [4]byte
	rand.Read(word[:]) // never fails
	path := filepath.Join(parent, "knotmeter-"+strconv.Itoa(os.Getpid())+"-"+hex.EncodeToString(word[:]))
	if name := machineName(); machine.Shared(parent) && name != "" {
		path += "-" + name
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for the run: %w", err)
	}
	dir, _, err := lock(path)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return &workDir{path, dir}, nil
}

// machineName is the name of this machine as a part of a file's; empty if it has none.
func machineName() string {
	name, _ := os.Hostname()
	return notInNames.ReplaceAllString(name, "_")
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// lock opens a directory and takes its lock, which the kernel gives back when the program ends. On a file system
// without locks it is not held.
func lock(path string) (dir *os.File, held bool, err error) {
	if dir, err = os.Open(path); err != nil {
		return nil, false, err
	}
	held, err = lockHeld(unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	if err != nil {
		return nil, false, errors.Join(fmt.Errorf("lock %s: %w", path, err), dir.Close())
	}
	return dir, held, nil
}

// lockHeld reports whether a lock was taken, by what flock(2) has answered. That a file system has none is no error.
func lockHeld(err error) (bool, error) {
	for _, none := range []error{unix.ENOTSUP, unix.EOPNOTSUPP, unix.ENOLCK, unix.ENOSYS, unix.EBADF} {
		if errors.Is(err, none) {
			return false, nil
		}
	}
	return err == nil, err
}

// unsure says why the lock of a directory does not tell whether a program still works in it; empty if it does. Network
// file systems such as NFS do not tell one machine of the locks that another has on directories.
func unsure(maker string, shared, held bool) string {
	const remedy = "if no program does, remove it with --all, or by hand"
	switch {
	case shared && maker == "":
		return "other machines may use its file system, and its name has no machine: " +
			"a program on any of them may work in it; " + remedy
	case shared && maker != machineName():
		return fmt.Sprintf("the machine %s made it, and a program there may work in it, which locks do not tell here; "+
			"clean it from there, or %s", maker, remedy)
	case !held:
		return "its file system has no locks, so that nothing tells whether a program works in it; " + remedy
	}
	return ""
}

// remove removes a directory unless there is something in it that no run makes.
func (w *workDir) remove() error {
	if err := w.check(); err != nil {
		return errors.Join(err, w.lock.Close())
	}
	return errors.Join(os.RemoveAll(w.path), w.lock.Close())
}

// Clean removes what programs that were killed left in the directories of these targets, and in the Vaults that they
// name, and returns the names of it. What a program works on stays; without how.All, so does what a program may work on
// where locks do not tell.
func Clean(ctx context.Context, specs []targets.Spec, how targets.Cleaning) ([]string, error) {
	var removed []string
	var errs []error
	for _, spec := range specs {
		d, err := parse(spec)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		mounts, err := d.vault.Clean(ctx, vault.Here(), how, nil)
		removed, errs = append(removed, mounts...), append(errs, err)
		if d.path == "" {
			continue
		}
		left, err := cleanIn(d.path, machine.Shared(d.path), how)
		removed, errs = append(removed, left...), append(errs, err)
	}
	return removed, errors.Join(errs...)
}

// cleanIn is Clean in a directory, whose file system other machines may share.
func cleanIn(parent string, shared bool, how targets.Cleaning) ([]string, error) {
	entries, err := os.ReadDir(parent)
	var removed []string
	errs := []error{err}
	for _, e := range entries {
		path, name := filepath.Join(parent, e.Name()), names.FindStringSubmatch(e.Name())
		if !e.IsDir() || name == nil {
			continue
		}
		dir, held, err := lock(path)
		if errors.Is(err, unix.EWOULDBLOCK) {
			how.Found(targets.Leftover{Name: path, Doubt: "a program that runs works on it"}) // even with --all
			continue
		}
		if err == nil && !how.Report(path, unsure(name[1], shared, held)) {
			err = dir.Close()
		} else if err == nil {
			if err = (&workDir{path, dir}).remove(); err == nil {
				removed = append(removed, path)
			}
		}
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}

// ourFile is how a run names the files that fio writes to.
var ourFile = regexp.MustCompile(`^knotmeter-[a-z0-9]+\.fio$`)

// check says what in a directory no run made: what fio would write to is a file of ours alone, which no link leads
// out of.
func (w *workDir) check() error {
	held, err := w.lock.Stat()
	if err != nil {
		return err
	}
	if now, err := os.Lstat(w.path); err != nil || !os.SameFile(held, now) {
		return fmt.Errorf("%s is not the directory any more that Knotmeter made: left as it is", w.path)
	}
	entries, err := os.ReadDir(w.path)
	for _, e := range entries {
		info, cannot := e.Info()
		switch {
		case cannot != nil:
			err = errors.Join(err, cannot)
		case !ourFile.MatchString(e.Name()) || !info.Mode().IsRegular() || links(info) > 1:
			err = errors.Join(err, fmt.Errorf("%s has %s in it, which is not Knotmeter's: left as it is", w.path, e.Name()))
		}
	}
	return err
}

func links(info os.FileInfo) uint64 {
	if stat, is := info.Sys().(*syscall.Stat_t); is {
		return uint64(stat.Nlink)
	}
	return 1
}
