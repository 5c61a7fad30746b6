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

// controlFd is where the holder finds its end of the control socket.
const controlFd = 3

// Hold is the whole life of a holder process: it serves requests until the process that started it is gone, then ends
// everything that it made. The hidden command that Config.Argv names calls it, and returns after it.
func Hold(kit Kit) error {
	control, err := linkOf(os.NewFile(controlFd, "lab control"))
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

// privateMounts gives the holder a /proc that shows its own processes. Where the kernel forbids that to a user
// namespace, as within some containers, the old one serves too.
func privateMounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return forbidden(fmt.Errorf("make the lab's mounts private: %w", err))
	}
	_ = unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	return nil
}

// forbidden is why there can be no lab here.
func forbidden(err error) error {
	return result.NotSupported(fmt.Sprintf("this system does not let this user make namespaces (%v), "+
		"so the lab needs root; see the settings kernel.unprivileged_userns_clone, "+
		"kernel.apparmor_restrict_unprivileged_userns, user.max_user_namespaces and user.max_net_namespaces", err))
}

// A holder holds sites, and runs commands in them.
type holder struct {
	kit     Kit
	control *link
	// ctx ends when nobody is left to wait for an answer.
	ctx    context.Context
	cancel context.CancelFunc
	// features of the kernel.
	features features

	mu       sync.Mutex
	sites    map[int]*site
	commands map[int]*command
	last     int // the last site's ID
	ending   bool
	running  sync.WaitGroup
}

// A command is a process of a site, the first of a process-id namespace of its own: the kernel ends all its children,
// however far they went, before it counts as ended.
type command struct {
	site    int
	process *os.Process // nil until it has started
	killed  bool        // before it could start
	done    chan struct{}
}

// serve answers requests until the control socket or a signal says that the other process is gone.
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
			// Known before the next message is read, which may be to kill it.
			h.mu.Lock()
			h.commands[r.ID] = &command{site: r.Site, done: make(chan struct{})}
			h.mu.Unlock()
		}
		h.running.Go(func() { h.answer(r, files) })
	}
}

func (h *holder) answer(r request, files []*os.File) {
	defer closeAll(files)
	answer := reply{ID: r.ID}
	var err error
	switch r.Do {
	case doProbe:
		err = h.probe(r)
	case doFind:
		answer.Found = find(h.kit.Features)
	case doOpen:
		answer.Site, err = h.open(r)
	case doExec:
		answer.Status, err = h.exec(r, files)
	case doClose:
		err = h.close(r.Site)
	default:
		err = fmt.Errorf("the lab's holder cannot do %q", r.Do)
	}
	answer.Error = failureOf(err)
	if err := h.control.send(answer); err != nil && !errors.Is(err, syscall.EPIPE) {
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

// exec runs a command to its end. The three files become its input and its outputs.
func (h *holder) exec(r request, files []*os.File) (int, error) {
	defer h.forget(r.ID)
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
	// The descriptors are the command's alone now, so that its readers see its end.
	closeAll(files)
	state, err := c.process.Wait()
	if err != nil {
		return 0, fmt.Errorf("wait for %s: %w", r.Args[0], err)
	}
	return state.ExitCode(), nil
}

// forget says that a command has ended, or never started.
func (h *holder) forget(id int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.commands[id].done)
	delete(h.commands, id)
}

// start starts the command and notes its process, in one step as far as kill and close can see.
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
			Files: files, Env: env, Sys: s.namespaces.attributes(syscall.CLONE_NEWPID),
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

// kill needs the holder's lock.
func (c *command) kill() {
	c.killed = true
	if c.process != nil {
		_ = c.process.Kill()
	}
}

// killSite kills what still runs in a site, or in all sites if id is 0, and waits for its end.
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

// close undoes a site and waits until the kernel has removed it.
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
	ctx, cancel := context.WithTimeout(h.ctx, goneTimeout)
	defer cancel()
	return s.gone(ctx)
}

// end kills and undoes everything. The kernel would do so anyway when the first process of a process-id namespace ends,
// except what OnClose of an op removes.
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
	// Whoever still works on a request works for nobody.
	select {
	case <-done:
	case <-time.After(time.Second):
	}
	if err := h.control.conn.Close(); err != nil && !errors.Is(err, io.EOF) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
