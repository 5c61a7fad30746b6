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
	"github.com/knotmeter/knotmeter/internal/targets"
)

// endTimeout is how long the holder may take to end when it is told to.
const endTimeout = 10 * time.Second

// A Lab is a running holder, as the process that started it sees it. It is safe for concurrent use.
type Lab struct {
	config  Config
	control *link
	ended   chan struct{} // closed when the holder has ended
	stderr  host.Tail
	pid     int

	mu      sync.Mutex
	waiting map[int]chan reply
	last    int
	broken  error // why no request can be made any more
}

// Start starts a holder. It ends with this process, however that ends.
func Start(c Config) (*Lab, error) {
	if len(c.Argv) == 0 {
		return nil, errors.New("the lab does not know how to start its holder")
	}
	control, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	l := &Lab{config: c, control: control, ended: make(chan struct{}), waiting: map[int]chan reply{}}
	started := make(chan error, 1)
	go l.process(theirs, started)
	err = <-started
	if err := errors.Join(err, theirs.Close()); err != nil {
		return nil, errors.Join(err, control.conn.Close())
	}
	if err := l.greeted(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	go l.read()
	return l, nil
}

// greeted waits for the holder's first message, which says whether it can work.
func (l *Lab) greeted() error {
	var hello reply
	files, err := l.control.receive(&hello)
	closeAll(files)
	if err != nil {
		return l.lost(err)
	}
	return hello.Error.err()
}

// process starts the holder and waits for its end on one thread, because the signal that the holder gets when its
// parent is gone is bound to the thread that started it.
func (l *Lab) process(control *os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(l.ended)
	cmd := &exec.Cmd{
		Path: l.config.Argv[0], Args: l.config.Argv, Stderr: &l.stderr, ExtraFiles: []*os.File{control},
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
			Pdeathsig:  syscall.SIGTERM,
			// A terminal's interrupt is for this process; it decides what becomes of the lab.
			Setsid: true,
		},
	}
	if l.config.Unprivileged() {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	if err := cmd.Start(); err != nil {
		started <- l.config.startError(err)
		return
	}
	l.pid = cmd.Process.Pid
	started <- nil
	_ = cmd.Wait()
}

// Unprivileged says whether the lab is in a user namespace.
func (c Config) Unprivileged() bool { return c.UserNamespace || os.Geteuid() != 0 }

func (c Config) startError(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) {
		return forbidden(err)
	}
	return fmt.Errorf("start the lab's holder: %w", err)
}

// read hands replies to those who wait, until the holder's end.
func (l *Lab) read() {
	for {
		var r reply
		files, err := l.control.receive(&r)
		closeAll(files)
		if err != nil {
			l.fail(err)
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

// lost is what an error of the control socket means.
func (l *Lab) lost(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
		return err
	}
	// Its last words may come after the end of the socket.
	select {
	case <-l.ended:
	case <-time.After(time.Second):
	}
	return fmt.Errorf("the lab's holder has ended%s", l.lastWords())
}

// fail ends all requests.
func (l *Lab) fail(err error) {
	err = l.lost(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = err
	for id, wait := range l.waiting {
		wait <- reply{ID: id, Error: failureOf(err)}
	}
	l.waiting = map[int]chan reply{}
}

// ask makes a request. The answer comes through the channel, in any case.
func (l *Lab) ask(r request, files ...*os.File) (int, <-chan reply, error) {
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
		return 0, nil, fmt.Errorf("the lab's holder does not answer: %w%s", err, l.lastWords())
	}
	return r.ID, wait, nil
}

func (l *Lab) call(r request) (reply, error) {
	_, wait, err := l.ask(r)
	if err != nil {
		return reply{}, err
	}
	answer := <-wait
	return answer, answer.Error.err()
}

// Probe says whether the kernel has what a datapath needs for a path: nil is yes, an error that Is
// result.ErrNotSupported is no, any other error is "could not tell".
func (l *Lab) Probe(datapath string, t Topology, path targets.Path) error {
	_, err := l.call(request{Do: doProbe, Datapath: datapath, Topology: t, Path: path})
	return err
}

// Features says which of the kit's features the kernel has, where sites are made.
func (l *Lab) Features() ([]Finding, error) {
	answer, err := l.call(request{Do: doFind})
	return answer.Found, err
}

// Open makes a site and checks its places, one for each placement. An error is about the whole site, of which nothing
// is left then. It is not interrupted, as it takes long only where ends do not reach each other: if ctx has ended
// meanwhile, the site is undone again.
func (l *Lab) Open(
	ctx context.Context, datapath string, t Topology, placements []targets.Placement,
) (SiteInfo, error) {
	if err := ctx.Err(); err != nil {
		return SiteInfo{}, err
	}
	answer, err := l.call(request{Do: doOpen, Datapath: datapath, Topology: t, Placements: placements})
	if err != nil {
		return SiteInfo{}, err
	}
	if answer.Site == nil {
		return SiteInfo{}, errors.New("the lab's holder has not described the site")
	}
	if err := ctx.Err(); err != nil {
		return SiteInfo{}, errors.Join(err, l.CloseSite(answer.Site.ID))
	}
	return *answer.Site, nil
}

// CloseSite kills what runs in a site, undoes it and returns when the kernel has removed it.
func (l *Lab) CloseSite(id int) error {
	_, err := l.call(request{Do: doClose, Site: id})
	return err
}

// Close ends the holder and all that it holds.
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

// Run runs a command in a namespace of a site, as host.Host says.
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
	id, wait, err := l.ask(request{Do: doExec, Site: site, Host: name, Args: c.Argv(l.config.Agent...)}, pipes.theirs...)
	pipes.handOver()
	if err != nil {
		pipes.drop()
		return fmt.Errorf("on %s: %s: %w", name, c, err)
	}
	answer := l.await(ctx, id, wait)
	// Nothing has the other ends any more, so the copying comes to its end.
	stderr := pipes.finish()
	switch {
	case ctx.Err() != nil && (answer.Error != nil || answer.Status != 0):
		return ctx.Err()
	case answer.Error != nil:
		return fmt.Errorf("on %s: %s: %w", name, c, answer.Error.err())
	case answer.Status != 0:
		return &host.ExitError{Command: c.String(), Host: name, Status: answer.Status, Stderr: stderr}
	}
	return pipes.err
}

// await waits for the end of a command, and kills it when ctx ends first.
func (l *Lab) await(ctx context.Context, id int, wait <-chan reply) reply {
	select {
	case answer := <-wait:
		return answer
	case <-ctx.Done():
	}
	if err := l.control.send(request{Do: doKill, Kill: id}); err != nil {
		// Then the holder is gone, and the command with it.
		l.fail(err)
	}
	return <-wait
}

// pipes are between a Cmd's streams and the command.
type pipes struct {
	theirs []*os.File
	stdin  *os.File // our end
	copies sync.WaitGroup
	outs   []*os.File // our ends
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
			p.handOver()
			p.drop()
			return nil, err
		}
		p.theirs, p.outs = append(p.theirs, write), append(p.outs, read)
		p.copies.Go(func() { p.copy(to, read) })
	}
	go p.feed(c.Stdin)
	return p, nil
}

// copy drains from even if to fails, so that the command is not held up.
func (p *pipes) copy(to io.Writer, from *os.File) {
	_, err := io.Copy(to, from)
	if err != nil && !errors.Is(err, os.ErrClosed) {
		p.mu.Lock()
		p.err = errors.Join(p.err, fmt.Errorf("copy output: %w", err))
		p.mu.Unlock()
		_, _ = io.Copy(io.Discard, from)
	}
}

// feed writes the input until it ends or the command does. A reader that blocks for ever is its owner's.
func (p *pipes) feed(from io.Reader) {
	if from != nil {
		_, _ = io.Copy(p.stdin, from)
	}
	_ = p.stdin.Close()
}

// handOver closes the command's ends here; the holder has its own.
func (p *pipes) handOver() { closeAll(p.theirs) }

// drop gives up.
func (p *pipes) drop() {
	_ = p.stdin.Close()
	closeAll(p.outs)
	p.copies.Wait()
}

// finish waits until all output is copied and returns the last lines of the errors.
func (p *pipes) finish() string {
	p.copies.Wait()
	p.drop()
	return p.errs.String()
}

// lastWords is what the holder has said, as the end of an error's text.
func (l *Lab) lastWords() string {
	if text := l.stderr.String(); text != "" {
		return ": " + text
	}
	return ""
}
