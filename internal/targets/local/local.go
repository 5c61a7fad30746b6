//go:build unix

// Package local provides this machine as a target: local:<dir> measures storage without a cluster, and local: measures
// the machine itself and is a client of applications.
//
// Runs work in a new directory within <dir>, which is removed afterwards. [Clean] finds the directories of killed
// programs by their names.
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
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/unit"
	"github.com/knotmeter/knotmeter/internal/vault"
)

// New returns the local target of a parsed text. agent is the command line of this program's agent, which sends
// requests to applications. New changes nothing. Every error Is result.ErrSpec.
func New(spec result.Spec, agent ...string) (targets.Target, error) {
	d, err := parse(spec)
	if err != nil {
		return nil, err
	}
	d.agent = agent
	return d, nil
}

// Directory returns the target of a directory without options. Every error Is result.ErrSpec.
func Directory(path string) (targets.Target, error) {
	return New(result.Spec{Kind: "local", Name: path, Text: "local:" + path})
}

// maxDefaultSize limits the bytes used of a file system by default: larger files take longer to write and add little.
const maxDefaultSize = 16 << 30

// leastSize is the size of the smallest file that can be measured.
const leastSize = 1 << 20

// A localTarget is a local target.
type localTarget struct {
	path      string         // empty: no storage cases
	vault     vault.Instance // for application cases
	agent     []string       // command line of the agent
	size      int64          // usable bytes; 0: half of the spare space, up to maxDefaultSize
	filling   int64          // targets of the experiment that fill the same file system; 0: not known yet
	granted   int64          // usable bytes while the experiment lasts; 0: not determined yet
	fresh     bool           // each site has a new working directory
	limit     cpuLimit       // of all that runs start
	group     *group         // control group with that limit; nil until a site needs it
	claim     *targets.MachineClaim
	sharedDir *workDir // of all sites, unless fresh; nil until one needs it
}

// Supports checks the placement, and for storage the directory. It writes nothing.
func (d *localTarget) Supports(p targets.Placement) error {
	if err := p.Check(); err != nil {
		return err
	}
	switch {
	case p.Path == "" && !p.Volume && !p.AsksAPI:
		return d.supportsClient(p)
	case !p.Volume:
		return result.NotSupported("this machine is measured itself, with its storage, and asks applications, " +
			"and nothing else; network paths without a cluster are lab:")
	case d.path == "":
		return result.NotSupported("which directory? for example local:/var/tmp")
	}
	if err := d.checkDirectory(); err != nil {
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

// checkDirectory returns an error unless the target's path is a directory.
func (d *localTarget) checkDirectory() error {
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

// Begin checks that the directory or the Vault exists, and claims the machine. If a switch command may unmount the
// localTarget between sites, each site has a new working directory.
func (d *localTarget) Begin(ctx context.Context, p targets.Plan) (warnings []string, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	d.fresh = d.fresh || p.InTurn
	if d.path != "" {
		if err := d.checkDirectory(); err != nil {
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
	if err == nil {
		err = d.makeGroup()
	}
	if err == nil && p.Filling > 0 {
		// Before anything is written, because every file takes free space.
		d.filling = int64(p.Filling)
		d.granted, err = d.usable()
	}
	return warnings, err
}

// Fills identifies the file system of the directory.
func (d *localTarget) Fills() string {
	if d.path == "" {
		return ""
	}
	return cmp.Or(machine.FileSystem(d.path), d.path)
}

// makeGroup makes the control group of the limit, if there is one and it was not made before.
func (d *localTarget) makeGroup() (err error) {
	if d.limit.milli > 0 && d.group == nil {
		if d.group, err = newGroup(d.limit.milli); err != nil {
			err = fmt.Errorf("cpu-limit=%s: %w", d.limit.text, err)
		}
	}
	return err
}

// keptPercent is the percentage of a file system that stays free.
const keptPercent = 10

// usable returns how many bytes a run may use: the size in the options, or half of the spare space, which is what is
// free above keptPercent of the file system. Targets that fill the same file system have equal shares of it.
func (d *localTarget) usable() (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(d.path, &fs); err != nil {
		return 0, result.NotSupported(fmt.Sprintf("the free space on %s is unknown: %v", d.path, err))
	}
	block := int64(fs.Bsize)
	free := int64(fs.Bavail) * block
	spare := free + d.written() - int64(fs.Blocks)/100*keptPercent*block
	share := spare / max(d.filling, 1)
	size := cmp.Or(d.granted, d.size, min(share/2, maxDefaultSize))
	if size >= leastSize && (size <= share || size == d.granted && size <= spare) {
		return size, nil
	}
	each := ""
	if d.filling > 1 {
		each = fmt.Sprintf(" by each of %d targets", d.filling)
	}
	return 0, result.NotSupported(fmt.Sprintf("%s has %s free, %d %% of its file system stay free, and %s are to be used"+
		"%s: free some, or give a smaller size=", d.path, unit.Format(float64(free), unit.Byte), keptPercent,
		unit.Format(float64(max(size, leastSize)), unit.Byte), each))
}

// written returns how many bytes the files of earlier runs take.
func (d *localTarget) written() (bytes int64) {
	if d.sharedDir == nil {
		return 0
	}
	entries, _ := os.ReadDir(d.sharedDir.path) // without them, less is spare
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

// Facts returns facts about the directory, its file system and disk, and this machine.
func (d *localTarget) Facts(context.Context) ([]result.Fact, error) {
	files := "one for all blocks"
	if d.fresh {
		files = "a new one for each block"
	}
	used := result.Unknown
	if n, err := d.usable(); err == nil {
		used = unit.Format(float64(n), unit.Byte)
	}
	facts := []result.Fact{{Name: "kind", Value: "local"}, {Name: "cpu-limit", Value: cmp.Or(d.limit.text, "none")}}
	if d.path == "" {
		return append(facts, machine.Facts()...), nil
	}
	facts = append(facts, result.Fact{Name: "directory", Value: d.path}, result.Fact{Name: "volume-used", Value: used},
		result.Fact{Name: "volume-file", Value: files})
	return append(append(facts, machine.Volume(d.path)...), machine.Facts()...), nil
}

// Open returns places whose client is this machine. They share one working directory.
func (d *localTarget) Open(ctx context.Context, placements []targets.Placement) (targets.Site, error) {
	if ctx.Err() != nil {
		return targets.Site{}, ctx.Err()
	}
	if err := d.makeGroup(); err != nil {
		return targets.Site{}, err
	}
	here := host.NewScoped(d.host())
	agents := agent.NewPool()
	client := agents.On(here)
	var work *workDir
	var site targets.Site
	for _, p := range placements {
		place := targets.Place{Err: d.Supports(p)}
		switch {
		case place.Err != nil:
		case !p.Volume:
			place = d.clientPlace(p)
		default:
			if work == nil {
				work, place.Err = d.workDir()
			}
			if place.Err == nil {
				place.Volume, place.Err = d.hostVolume(work)
			}
		}
		if place.Err == nil {
			place.Client, place.Shared, place.CPULimit = client, true, d.limit.text
			place.Warnings = append(place.Warnings, d.limit.warnings()...)
		}
		site.Places = append(site.Places, place)
	}
	site.Close = func(context.Context) error {
		agents.Close()
		here.End()
		if d.fresh && work != nil {
			return work.remove()
		}
		return nil
	}
	return site, nil
}

// host returns this machine, limited if there is a limit.
func (d *localTarget) host() host.Host {
	const name = "local"
	here := host.NewLocal(name, netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil, d.agent...)
	if d.group == nil {
		return here
	}
	return &limited{Host: here, group: d.group, agent: d.agent}
}

// warnings returns what a reader of limited results should know.
func (l cpuLimit) warnings() []result.Warning {
	if l.milli == 0 {
		return nil
	}
	return []result.Warning{{Code: result.CPULimitSet, Text: "the runs have a CPU limit of " + l.text +
		" by cpu-limit=: it is part of what was measured"}}
}

// A limited host starts every command in a control group.
type limited struct {
	host.Host
	group *group
	agent []string // command line of the agent
}

// Run runs c as the host does.
func (l *limited) Run(ctx context.Context, c host.Cmd) error {
	args := c.Argv(l.agent...)
	if len(args) == 0 {
		return l.Host.Run(ctx, c)
	}
	program, err := exec.LookPath(args[0])
	if err != nil {
		return fmt.Errorf("on %s: %s: %w", l.Name(), args[0], host.ErrNoCommand)
	}
	c.Args = slices.Concat([]string{l.agent[0], remote.EnterCommand, l.group.Dir(), program}, args[1:])
	return l.Host.Run(ctx, c)
}

// hostVolume returns a working directory as the volume of runs, which keeps their files.
func (d *localTarget) hostVolume(dir *workDir) (host.Volume, error) {
	size, err := d.usable()
	if err == nil {
		err = dir.check()
	}
	if err != nil {
		return host.Volume{}, err
	}
	return host.Volume{Path: dir.path, Size: size, Kept: dir.path}, nil
}

// CheckProgram returns an error if this machine lacks a program that runs start; empty is none.
func CheckProgram(program string) error {
	if program == "" {
		return nil
	}
	if _, err := exec.LookPath(program); err != nil {
		return result.NotSupported(host.Missing(program, "this machine"))
	}
	return nil
}

// supportsClient returns an error if this machine cannot be the client of a placement. The location of Vault must be
// given as an option; workloads give that of other applications.
func (d *localTarget) supportsClient(p targets.Placement) error {
	if len(d.agent) == 0 {
		return result.NotSupported("this machine is not asked from here")
	}
	return cmp.Or(d.vault.Supports(vault.Here(), p), CheckProgram(p.Program))
}

// Applications returns the destination of the Vault in the options.
func (d *localTarget) Applications() map[string]host.Destination {
	return d.vault.Applications(vault.Here())
}

// clientPlace returns the place of a client without a volume.
func (d *localTarget) clientPlace(p targets.Placement) targets.Place {
	place := targets.Place{Facts: []result.Fact{{Name: "client", Value: "this machine"}}}
	if p.Application != "" {
		place.Endpoint, place.Err = d.vault.Endpoint(vault.Here())
	}
	return place
}

// workDir returns the directory in which the runs of a site work: a new one, or the shared one.
func (d *localTarget) workDir() (*workDir, error) {
	if d.fresh {
		return newWorkDir(d.path)
	}
	var err error
	if d.sharedDir == nil {
		d.sharedDir, err = newWorkDir(d.path)
	}
	return d.sharedDir, err
}

// Close removes the control group and the shared working directory, and ends the claim.
func (d *localTarget) Close() error {
	defer d.claim.Close() // ignore errors: the lock ends with the process
	var errs []error
	if d.group != nil {
		errs = append(errs, d.group.Close())
	}
	if d.sharedDir != nil {
		errs = append(errs, d.sharedDir.remove())
	}
	return errors.Join(errs...)
}

// A workDir is a directory that runs may fill, locked by the process that made it.
type workDir struct {
	path string
	lock *os.File
}

// workDirName matches the names of working directories: process ID, random word, and on a file system that other
// machines may use, the name of the machine.
var workDirName = regexp.MustCompile(`^knotmeter-[0-9]+-[0-9a-f]{8}(?:-([A-Za-z0-9._-]+))?$`)

// newWorkDir makes and locks a working directory.
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

// machineName returns the name of this machine as part of a file name; empty if it has none.
func machineName() string {
	name, _ := os.Hostname()
	return invalidInName.ReplaceAllString(name, "_")
}

var invalidInName = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// lock opens and locks a directory; the kernel releases the lock when the process ends. held is false if the file
// system does not support locks.
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

// lockHeld reports whether flock(2), which returned err, took a lock. Missing support of the file system is not
// returned as an error.
func lockHeld(err error) (bool, error) {
	for _, none := range []error{unix.ENOTSUP, unix.EOPNOTSUPP, unix.ENOLCK, unix.ENOSYS, unix.EBADF} {
		if errors.Is(err, none) {
			return false, nil
		}
	}
	return err == nil, err
}

// lockDoubt returns the reason why an unlocked directory may still be in use; empty if it is not. maker is the machine
// in its name. Network file systems such as NFS do not show the locks on directories of other machines.
func lockDoubt(maker string, shared, held bool) string {
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

// remove removes the directory, unless it contains other files than those of runs, and releases the lock.
func (w *workDir) remove() error {
	if err := w.check(); err != nil {
		return errors.Join(err, w.lock.Close())
	}
	return errors.Join(os.RemoveAll(w.path), w.lock.Close())
}

// Clean removes leftovers of killed programs in the directories of these targets, and in the Vaults that they name, and
// returns their names. It keeps directories in use, and without how.All also those whose locks do not show whether they
// are.
func Clean(ctx context.Context, specs []result.Spec, how targets.Cleaning) ([]string, error) {
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

// cleanIn removes leftovers in a directory. shared is set if other machines may use its file system.
func cleanIn(parent string, shared bool, how targets.Cleaning) ([]string, error) {
	entries, err := os.ReadDir(parent)
	var removed []string
	errs := []error{err}
	for _, e := range entries {
		path, name := filepath.Join(parent, e.Name()), workDirName.FindStringSubmatch(e.Name())
		if !e.IsDir() || name == nil {
			continue
		}
		dir, held, err := lock(path)
		if errors.Is(err, unix.EWOULDBLOCK) {
			how.Found(targets.Leftover{Name: path, Reason: "a program that runs works on it"}) // even with --all
			continue
		}
		if err == nil && !how.Report(path, lockDoubt(name[1], shared, held)) {
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

// runFileName matches the names of the files that runs of fio write to.
var runFileName = regexp.MustCompile(`^knotmeter-[a-z0-9]+\.fio$`)

// check returns an error if the directory was replaced, or contains anything but regular run files without further hard
// links. So fio never writes to other files.
func (w *workDir) check() error {
	locked, err := w.lock.Stat()
	if err != nil {
		return err
	}
	if now, err := os.Lstat(w.path); err != nil || !os.SameFile(locked, now) {
		return fmt.Errorf("%s is not the directory any more that Knotmeter made: left as it is", w.path)
	}
	entries, err := os.ReadDir(w.path)
	for _, e := range entries {
		info, infoErr := e.Info()
		switch {
		case infoErr != nil:
			err = errors.Join(err, infoErr)
		case !runFileName.MatchString(e.Name()) || !info.Mode().IsRegular() || linkCount(info) > 1:
			err = errors.Join(err, fmt.Errorf("%s has %s in it, which is not Knotmeter's: left as it is", w.path, e.Name()))
		}
	}
	return err
}

// linkCount returns the number of hard links to a file.
func linkCount(info os.FileInfo) uint64 {
	if stat, is := info.Sys().(*syscall.Stat_t); is {
		return uint64(stat.Nlink)
	}
	return 1
}
