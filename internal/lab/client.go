//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// endTimeout is how long the holder may take to end after its control socket is closed.
const endTimeout = 10 * time.Second

// A Lab is a running holder as seen by the process that started it. It is safe for concurrent use.
type Lab struct {
	config  Config
	control *link
	ended   chan struct{} // closed when the holder has ended
	stderr  host.Tail
	pid     int

	mu      sync.Mutex
	waiting map[int]chan reply
	last    int
	broken  error // why no more requests can be made; nil: they can
}

// Start starts a holder, which ends when this process ends for any reason.
func Start(c Config) (*Lab, error) {
	if len(c.Argv) == 0 {
		return nil, errors.New("the lab does not know how to start its holder")
	}
	control, theirs, err := newLinkPair()
	if err != nil {
		return nil, err
	}
	l := &Lab{config: c, control: control, ended: make(chan struct{}), waiting: map[int]chan reply{}}
	started := make(chan error, 1)
	go l.runHolder(theirs, started)
	err = <-started
	if err := errors.Join(err, theirs.Close()); err != nil {
		return nil, errors.Join(err, control.conn.Close())
	}
	if err := l.awaitHello(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	go l.dispatch()
	return l, nil
}

// awaitHello waits for the holder's first message, which reports whether it can work.
func (l *Lab) awaitHello() error {
	var hello reply
	files, err := l.control.receive(&hello)
	closeAll(files)
	if err != nil {
		return l.explainLoss(err)
	}
	return hello.Error.err()
}

// runHolder starts the holder and waits for its end on one thread, because the kernel sends Pdeathsig when the thread
// that started the holder ends, not when the process does.
func (l *Lab) runHolder(control *os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(l.ended)
	cmd := &exec.Cmd{
		Path: l.config.Argv[0], Args: l.config.Argv, Stderr: &l.stderr, ExtraFiles: []*os.File{control},
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
			Pdeathsig:  syscall.SIGTERM,
			// An interrupt from the terminal must reach only this process, which then decides about the lab.
			Setsid: true,
		},
	}
	if l.config.Unprivileged() {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	if err := cmd.Start(); err != nil {
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) {
			started <- namespacesForbidden(err)
		} else {
			started <- fmt.Errorf("start the lab's holder: %w", err)
		}
		return
	}
	l.pid = cmd.Process.Pid
	started <- nil
	_ = cmd.Wait()
}

// Unprivileged reports whether the lab is in a user namespace.
func (c Config) Unprivileged() bool { return c.UserNamespace || os.Geteuid() != 0 }

// dispatch passes replies to the requests that wait for them, until the holder ends.
func (l *Lab) dispatch() {
	for {
		var r reply
		files, err := l.control.receive(&r)
		closeAll(files)
		if err != nil {
			l.failAll(err)
			return
		}
		l.mu.Lock()
		wait := l.waiting[r.ID]
		delete(l.waiting, r.ID)
		l.mu.Unlock()
		if wait != nil {
			wait <- r
		}
	}
}

// explainLoss returns the error to report for an error of the control socket.
func (l *Lab) explainLoss(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
		return err
	}
	// The holder's last output may come after the end of the socket.
	select {
	case <-l.ended:
	case <-time.After(time.Second):
	}
	return fmt.Errorf("the lab's holder has ended%s", l.stderrSuffix())
}

// failAll ends all requests with an error.
func (l *Lab) failAll(err error) {
	err = l.explainLoss(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = err
	for id, wait := range l.waiting {
		wait <- reply{ID: id, Error: failureOf(err)}
	}
	l.waiting = map[int]chan reply{}
}

// submit sends a request and returns its ID and the channel that receives its reply, which always comes.
func (l *Lab) submit(r request, files ...*os.File) (int, <-chan reply, error) {
	l.mu.Lock()
	if l.broken != nil {
		defer l.mu.Unlock()
		return 0, nil, l.broken
	}
	l.last++
	r.ID = l.last
	wait := make(chan reply, 1)
	l.waiting[r.ID] = wait
	l.mu.Unlock()
	if err := l.control.send(r, files...); err != nil {
		l.mu.Lock()
		delete(l.waiting, r.ID)
		l.mu.Unlock()
		return 0, nil, fmt.Errorf("the lab's holder does not respond: %w%s", err, l.stderrSuffix())
	}
	return r.ID, wait, nil
}

func (l *Lab) call(r request) (reply, error) {
	_, wait, err := l.submit(r)
	if err != nil {
		return reply{}, err
	}
	response := <-wait
	return response, response.Error.err()
}

// Probe returns nil if the kernel has what a datapath needs for a path, and an error that Is result.ErrNotSupported if
// it does not. With any other error it is not known.
func (l *Lab) Probe(datapath string, t Topology, path result.Path) error {
	_, err := l.call(request{Do: doProbe, Datapath: datapath, Topology: t, Path: path})
	return err
}

// Features returns which of the kit's features the kernel has where sites are made.
func (l *Lab) Features() ([]Finding, error) {
	response, err := l.call(request{Do: doFeatures})
	return response.Found, err
}

// Open makes a site and checks its places, one for each placement. After an error nothing of the site remains; errors
// of single places are in the SiteInfo. The end of ctx does not interrupt Open, which takes long only if ends do not
// reach each other; the site is closed again if ctx has ended meanwhile.
func (l *Lab) Open(
	ctx context.Context, datapath string, t Topology, placements []targets.Placement,
) (SiteInfo, error) {
	if err := ctx.Err(); err != nil {
		return SiteInfo{}, err
	}
	response, err := l.call(request{Do: doOpen, Datapath: datapath, Topology: t, Placements: placements})
	if err != nil {
		return SiteInfo{}, err
	}
	if response.Site == nil {
		return SiteInfo{}, errors.New("the lab's holder has not described the site")
	}
	if err := ctx.Err(); err != nil {
		return SiteInfo{}, errors.Join(err, l.CloseSite(response.Site.ID))
	}
	return *response.Site, nil
}

// CloseSite kills the commands of a site, removes the site, and returns when the kernel has removed it.
func (l *Lab) CloseSite(id int) error {
	_, err := l.call(request{Do: doClose, Site: id})
	return err
}

// Close ends the holder and everything that it holds.
func (l *Lab) Close() error {
	err := l.control.conn.Close()
	select {
	case <-l.ended:
		return err
	case <-time.After(endTimeout):
		return errors.Join(err, unix.Kill(l.pid, unix.SIGKILL),
			fmt.Errorf("the lab's holder did not end within %s and was killed", endTimeout))
	}
}

// Run runs a command in a namespace of a site, as [host.Host] describes.
func (l *Lab) Run(ctx context.Context, site int, name string, c host.Cmd) error {
	if len(c.Args) == 0 {
		return fmt.Errorf("on %s: a command without a name", name)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	pipes, err := newPipes(c)
	if err != nil {
		return fmt.Errorf("on %s: %w", name, err)
	}
	r := request{Do: doExec, Site: site, Host: name, Args: c.Argv(l.config.Agent...)}
	id, wait, err := l.submit(r, pipes.theirs...)
	pipes.closeTheirs()
	if err != nil {
		pipes.closeOurs()
		return fmt.Errorf("on %s: %s: %w", name, c, err)
	}
	response := l.awaitCommand(ctx, id, wait)
	// No process has the other ends of the pipes any more, so copying ends.
	stderr := pipes.finish()
	switch {
	case ctx.Err() != nil && (response.Error != nil || response.Status != 0):
		return ctx.Err()
	case response.Error != nil:
		return fmt.Errorf("on %s: %s: %w", name, c, response.Error.err())
	case response.Status != 0:
		return &host.ExitError{Command: c.String(), Host: name, Status: response.Status, Stderr: stderr}
	}
	return pipes.err
}

// awaitCommand waits for the reply to a command, and kills the command when ctx ends first.
func (l *Lab) awaitCommand(ctx context.Context, id int, wait <-chan reply) reply {
	select {
	case response := <-wait:
		return response
	case <-ctx.Done():
	}
	if err := l.control.send(request{Do: doKill, Kill: id}); err != nil {
		// The holder has ended, and the command with it.
		l.failAll(err)
	}
	return <-wait
}

// pipes connect a Cmd's streams with the command.
type pipes struct {
	theirs []*os.File // the command's ends
	stdin  *os.File   // this process's end
	copies sync.WaitGroup
	outs   []*os.File // this process's ends
	errs   host.Tail
	err    error // of writing output
	mu     sync.Mutex
}

func newPipes(c host.Cmd) (*pipes, error) {
	p := &pipes{}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.theirs, p.stdin = append(p.theirs, read), write
	stdout := c.Stdout
	if stdout == nil {
		stdout = io.Discard
	}
	for _, to := range []io.Writer{stdout, p.errs.Tee(c.Stderr)} {
		read, write, err := os.Pipe()
		if err != nil {
			p.closeTheirs()
			p.closeOurs()
			return nil, err
		}
		p.theirs, p.outs = append(p.theirs, write), append(p.outs, read)
		p.copies.Go(func() { p.copy(to, read) })
	}
	go func() { // while a read of the input blocks, it outlives the command
		if c.Stdin != nil {
			_, _ = io.Copy(write, c.Stdin)
		}
		_ = write.Close()
	}()
	return p, nil
}

// copy copies the command's output. It reads to the end even if a write fails, so that the command does not block.
func (p *pipes) copy(to io.Writer, from *os.File) {
	_, err := io.Copy(to, from)
	if err != nil && !errors.Is(err, os.ErrClosed) {
		p.mu.Lock()
		p.err = errors.Join(p.err, fmt.Errorf("copy output: %w", err))
		p.mu.Unlock()
		_, _ = io.Copy(io.Discard, from)
	}
}

// closeTheirs closes the command's ends in this process; the holder has its own descriptors.
func (p *pipes) closeTheirs() { closeAll(p.theirs) }

// closeOurs closes this process's ends and waits for copying to end.
func (p *pipes) closeOurs() {
	_ = p.stdin.Close()
	closeAll(p.outs)
	p.copies.Wait()
}

// finish waits until all output is copied and returns the end of standard error.
func (p *pipes) finish() string {
	p.copies.Wait()
	p.closeOurs()
	return p.errs.String()
}

// stderrSuffix returns what the holder wrote to standard error, as the end of an error's text.
func (l *Lab) stderrSuffix() string {
	if text := l.stderr.String(); text != "" {
		return ": " + text
	}
	return ""
}
