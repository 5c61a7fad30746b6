//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/counter"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
)

// controlFd is the descriptor of the holder's end of the control socket.
const controlFd = 3

// Hold runs a holder process: it serves requests until the process that started it has ended, then removes everything
// that it made. The hidden command that Config.Argv names calls it and then returns.
func Hold(kit Kit) error {
	control, err := newLink(os.NewFile(controlFd, "lab control"))
	if err != nil {
		return fmt.Errorf("this command is for Knotmeter's own use: %w", err)
	}
	err = privateMounts()
	if err := errors.Join(err, control.send(reply{Error: failureOf(err)})); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	h := &holder{kit: kit, control: control, ctx: ctx, cancel: cancel,
		features: features{known: map[string]error{}}, sites: map[int]*site{}, commands: map[int]*command{}}
	h.serve()
	return h.end()
}

// privateMounts mounts a /proc that shows the holder's own processes. In some containers the kernel does not allow that
// in a user namespace; the lab works with the old /proc too.
func privateMounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return namespacesForbidden(fmt.Errorf("make the lab's mounts private: %w", err))
	}
	_ = unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	return nil
}

// namespacesForbidden returns the reason why this user cannot have a lab here.
func namespacesForbidden(err error) error {
	return result.NotSupported(fmt.Sprintf("this system does not let this user make namespaces (%v), "+
		"so the lab needs root; see the settings kernel.unprivileged_userns_clone, "+
		"kernel.apparmor_restrict_unprivileged_userns, user.max_user_namespaces and user.max_net_namespaces", err))
}

// A holder makes sites and runs commands in them.
type holder struct {
	kit     Kit
	control *link
	// ctx ends when no process waits for replies any more.
	ctx      context.Context
	cancel   context.CancelFunc
	features features // of the kernel

	mu       sync.Mutex
	sites    map[int]*site
	commands map[int]*command
	last     int // the last site's ID
	ending   bool
	running  sync.WaitGroup
}

// A command is a process of a site. It is the first process of its own process ID namespace, so that the kernel ends
// all its descendants before it counts as ended.
type command struct {
	site    int
	process *os.Process // nil until it has started
	killed  bool        // kill was called, perhaps before the process started
	done    chan struct{}
}

// serve handles requests until the control socket is closed or a signal comes.
func (h *holder) serve() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	go func() {
		<-stop
		_ = h.control.conn.CloseRead()
	}()
	for {
		var r request
		files, err := h.control.receive(&r)
		if err != nil {
			return
		}
		if r.Do == doKill {
			closeAll(files)
			h.kill(r.Kill)
			continue
		}
		if r.Do == doExec {
			// The command must be known before the next message is read, which may be to kill it.
			h.mu.Lock()
			h.commands[r.ID] = &command{site: r.Site, done: make(chan struct{})}
			h.mu.Unlock()
		}
		h.running.Go(func() { h.handle(r, files) })
	}
}

func (h *holder) handle(r request, files []*os.File) {
	defer closeAll(files)
	response := reply{ID: r.ID}
	var err error
	switch r.Do {
	case doProbe:
		err = h.probe(r)
	case doFeatures:
		response.Found = tryFeatures(h.kit.Features)
	case doOpen:
		response.Site, err = h.open(r)
	case doExec:
		response.Status, err = h.exec(r, files)
	case doClose:
		err = h.close(r.Site)
	default:
		err = fmt.Errorf("the lab's holder cannot do %q", r.Do)
	}
	response.Error = failureOf(err)
	if err := h.control.send(response); err != nil && !errors.Is(err, syscall.EPIPE) {
		_ = h.control.send(reply{ID: r.ID, Error: failureOf(err)})
	}
}

func (h *holder) probe(r request) error {
	plan, err := h.kit.Plan(r.Datapath, r.Topology)
	if err != nil {
		return err
	}
	return h.features.probe(plan, r.Path)
}

func (h *holder) open(r request) (*SiteInfo, error) {
	h.mu.Lock()
	h.last++
	id := h.last
	h.mu.Unlock()
	s, info, err := openSite(h.kit, id, r)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ending {
		return nil, errors.Join(errors.New("the lab is ending"), s.close())
	}
	h.sites[id] = s
	return info, nil
}

// exec runs a command to its end and returns its exit status. files are its standard streams.
func (h *holder) exec(r request, files []*os.File) (int, error) {
	defer h.removeCommand(r.ID)
	if len(r.Args) == 0 || len(files) != 3 {
		return 0, errors.New("a command needs a name and three descriptors")
	}
	path, err := exec.LookPath(r.Args[0])
	if err != nil {
		return 0, fmt.Errorf("%s: %w", r.Args[0], host.ErrNoCommand)
	}
	c, err := h.start(r, path, files)
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", r.Args[0], err)
	}
	// Only the command has the descriptors now, so that its readers notice its end.
	closeAll(files)
	state, err := c.process.Wait()
	if err != nil {
		return 0, fmt.Errorf("wait for %s: %w", r.Args[0], err)
	}
	return state.ExitCode(), nil
}

// removeCommand removes a command that has ended or that never started.
func (h *holder) removeCommand(id int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.commands[id].done)
	delete(h.commands, id)
}

// start starts the command and notes its process, atomically with respect to kill and close.
func (h *holder) start(r request, path string, files []*os.File) (*command, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, ok := h.sites[r.Site]
	if !ok || h.ending {
		return nil, fmt.Errorf("site %d is not open", r.Site)
	}
	space, ok := s.namespaces.spaces[r.Host]
	if !ok {
		return nil, fmt.Errorf("the site has no %s", r.Host)
	}
	c := h.commands[r.ID]
	if c.killed {
		return nil, errors.New("it was killed before it started")
	}
	env := os.Environ()
	if node, isPod := s.namespaces.spaces[NodeOf(r.Host)]; isPod {
		env = append(env, fmt.Sprintf("%s=/proc/self/fd/%d", counter.Node, len(files)))
		files = append(slices.Clip(files), node.ns.File())
	}
	err := space.ns.Do(func() (err error) {
		c.process, err = os.StartProcess(path, r.Args, &os.ProcAttr{
			Files: files, Env: env, Sys: s.namespaces.sysProcAttr(syscall.CLONE_NEWPID),
		})
		return err
	})
	return c, err
}

func (h *holder) kill(id int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c, ok := h.commands[id]; ok {
		c.kill()
	}
}

// kill kills the process, or prevents its start. The caller holds the holder's lock.
func (c *command) kill() {
	c.killed = true
	if c.process != nil {
		_ = c.process.Kill()
	}
}

// killSite kills the commands of a site, or of all sites if id is 0, and waits for their end.
func (h *holder) killSite(id int) {
	h.mu.Lock()
	var killed []*command
	for _, c := range h.commands {
		if id == 0 || c.site == id {
			c.kill()
			killed = append(killed, c)
		}
	}
	h.mu.Unlock()
	for _, c := range killed {
		<-c.done
	}
}

// close closes a site and waits until the kernel has removed it.
func (h *holder) close(id int) error {
	h.mu.Lock()
	s, ok := h.sites[id]
	delete(h.sites, id)
	h.mu.Unlock()
	if !ok {
		return fmt.Errorf("site %d is not open", id)
	}
	h.killSite(id)
	if err := s.close(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(h.ctx, removalTimeout)
	defer cancel()
	return s.awaitRemoval(ctx)
}

// end kills all commands and closes all sites. When the first process of a process ID namespace ends, the kernel does
// the same, except for what functions of OnClose remove.
func (h *holder) end() error {
	h.cancel()
	h.mu.Lock()
	h.ending = true
	sites := h.sites
	h.sites = map[int]*site{}
	h.mu.Unlock()
	h.killSite(0)
	var errs []error
	for _, s := range sites {
		errs = append(errs, s.close())
	}
	done := make(chan struct{})
	go func() {
		h.running.Wait()
		close(done)
	}()
	// No process waits for the requests that are still in progress.
	select {
	case <-done:
	case <-time.After(time.Second):
	}
	if err := h.control.conn.Close(); err != nil && !errors.Is(err, io.EOF) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
