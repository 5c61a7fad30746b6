//go:build linux

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// parts holds the running processes of a cluster. Each can be stopped and started while the others run; one that ends
// by itself ends the cluster.
type parts struct {
	spec    spec
	ended   chan error // the first process that ended by itself
	orders  sync.Mutex // held while an order is carried out
	mu      sync.Mutex // guards spec and running
	running map[string]*running
	limits  *limits
}

// A running is a process that was started and has not ended.
type running struct {
	pid     int
	stopped bool          // by an order
	over    chan struct{} // closed when it has ended
}

func newParts(s spec) *parts {
	return &parts{spec: s, ended: make(chan error, 1), running: map[string]*running{}, limits: newLimits(s)}
}

// start starts the process, with its output in a log of its name, and waits until it is ready.
func (p *parts) start(ctx context.Context, proc process) error {
	log, err := os.OpenFile(p.spec.file(proc.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	c := exec.Command(proc.args[0], proc.args[1:]...)
	c.Stdout, c.Stderr = log, log
	c.Env = append([]string{"PATH=" + p.spec.Bin + ":/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + p.spec.Dir}, proc.env...)
	group, err := proc.enterCgroup(c)
	if err != nil {
		return err
	}
	defer group.Close()
	if err := c.Start(); err != nil {
		return fmt.Errorf("%s: %w", proc.name, err)
	}
	r := &running{pid: c.Process.Pid, over: make(chan struct{})}
	p.mu.Lock()
	p.running[proc.name] = r
	p.mu.Unlock()
	go p.watch(proc.name, r, c)
	if proc.ready == nil {
		return nil
	}
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-r.over:
			cancel(errEnded)
		case <-waiting.Done():
		}
	}()
	if err := proc.ready(waiting); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", proc.name, err), errors.New(tail(log.Name())))
	}
	return nil
}

// enterCgroup makes c start in the process's cgroup. The caller closes the file, which may be nil, after the start.
func (p process) enterCgroup(c *exec.Cmd) (*os.File, error) {
	if p.cgroup == "" {
		return nil, nil
	}
	group, err := os.Open(p.cgroup)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the machine has no cgroups of version 2
	}
	if err == nil {
		c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	}
	return group, err
}

// watch waits for the end of a process, and reports it to ended unless an order stopped the process.
func (p *parts) watch(name string, r *running, c *exec.Cmd) {
	err := c.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	close(r.over)
	delete(p.running, name)
	if r.stopped {
		return
	}
	select {
	case p.ended <- fmt.Errorf("%s ended (%v); %s", name, err, tail(p.spec.file(name+".log"))):
	default: // only the first is reported
	}
}

// kill ends processes by SIGKILL, and waits for their end.
func (p *parts) kill(names []string) error {
	var ending []*running
	p.mu.Lock()
	for _, name := range names {
		if r := p.running[name]; r != nil {
			r.stopped = true
			ending = append(ending, r)
		}
	}
	p.mu.Unlock()
	for _, r := range ending {
		if err := syscall.Kill(r.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		<-r.over
	}
	return nil
}

// isRunning reports whether a process runs.
func (p *parts) isRunning(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running[name] != nil
}

// A part of the cluster can be stopped: a process, a node with all its processes, or a node's link to the others.
type part struct {
	name      string
	processes []process
	node      *node  // nil unless the part is a whole node
	link      string // of the node; empty unless the part is a link
}

// allParts returns every part of the cluster.
func (s spec) allParts() []part {
	var list []part
	add := func(processes []process) {
		for _, p := range processes {
			list = append(list, part{name: p.name, processes: []process{p}})
		}
	}
	add(s.controlPlane())
	add(s.plugin().control(s))
	for _, n := range s.nodes() {
		list = append(list, part{name: n.Name, processes: s.nodeProcesses(n), node: &n},
			part{name: n.Name + "-link", link: n.Name})
		add(s.nodeProcesses(n))
	}
	return list
}

// part finds a part by its name.
func (s spec) part(name string) (part, error) {
	var names []string
	for _, p := range s.allParts() {
		if p.name == name {
			return p, nil
		}
		names = append(names, p.name)
	}
	return part{}, fmt.Errorf("there is no part %q; there are %s", name, strings.Join(names, ", "))
}

// order carries out a verb: stop, start or restart on the part name, throttle on a device, or network.
func (p *parts) order(ctx context.Context, verb, name string) error {
	p.orders.Lock()
	defer p.orders.Unlock()
	switch verb {
	case "throttle":
		return p.limits.set(name)
	case "network":
		return p.changeNetwork(ctx, name)
	}
	t, err := p.spec.part(name)
	if err != nil {
		return err
	}
	if verb != "start" {
		if err := p.stopPart(t); err != nil {
			return err
		}
	}
	if verb != "stop" {
		return p.startPart(ctx, t)
	}
	return nil
}

// stopPart kills a part. A node's pods end with it: every process in its network or its cgroup.
func (p *parts) stopPart(t part) error {
	if t.link != "" {
		return words("ip link set " + t.link + " down").run()
	}
	var names []string
	for _, process := range slices.Backward(t.processes) {
		names = append(names, process.name)
	}
	if err := p.kill(names); err != nil || t.node == nil {
		return err
	}
	kill := func() error { return p.spec.killNode(*t.node) }
	err := await(context.Background(), "the end of "+t.node.Name, 30*time.Second, kill)
	if err != nil {
		return err
	}
	return t.node.clearState()
}

// startPart starts those processes of a part that do not run, and waits until they are ready, and the node if it is
// one.
func (p *parts) startPart(ctx context.Context, t part) error {
	if t.link != "" {
		return words("ip link set " + t.link + " up").run()
	}
	since := nextSecond()
	for _, process := range t.processes {
		if p.isRunning(process.name) {
			continue
		}
		if err := p.start(ctx, process); err != nil {
			return err
		}
	}
	if t.node == nil {
		return nil
	}
	return p.spec.awaitNode(ctx, *t.node, since)
}

// nextSecond waits until the next second begins and returns it. Times of the API have a resolution of 1 s, so those
// from the returned time on are later than the call.
func nextSecond() time.Time {
	next := time.Now().Truncate(time.Second).Add(time.Second)
	time.Sleep(time.Until(next))
	return next
}

// killNode kills the processes in a node's network or cgroups; it returns an error if there were any.
func (s spec) killNode(n node) error {
	found, err := s.processesOf(n)
	if err != nil {
		return err
	}
	for _, pid := range found {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	if len(found) > 0 {
		return fmt.Errorf("%d processes ran on it still", len(found))
	}
	return nil
}

// processesOf returns the processes in a node's network, such as shims of containers, and those in its cgroups.
func (s spec) processesOf(n node) ([]int, error) {
	var there syscall.Stat_t
	if err := syscall.Stat(n.namespace(), &there); err != nil {
		return nil, err
	}
	var list []int
	files, err := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, file := range files {
		pid, err := strconv.Atoi(strings.Split(file, "/")[2])
		if err != nil || zombie(pid) {
			continue
		}
		var own syscall.Stat_t
		in := syscall.Stat(file, &own) == nil && own.Ino == there.Ino
		groups, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		if in || strings.Contains(string(groups), "/"+s.cgroup()+"/"+n.Name+"/") {
			list = append(list, pid)
		}
	}
	return list, err
}

// zombie reports whether a process has ended, and its parent has not yet waited for it.
func zombie(pid int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Contains(string(text), ") Z ")
}

// clearState removes what a machine loses by a reboot: loop devices, mounts, and the runtime's state of containers.
func (n node) clearState() error {
	if err := removeLoops(n.Dir); err != nil {
		return err
	}
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || !strings.HasPrefix(fields[1], n.file("state")+"/") &&
			!strings.HasPrefix(fields[1], n.file("kubelet")+"/") {
			continue
		}
		err := syscall.Unmount(fields[1], syscall.MNT_DETACH)
		if err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOENT) {
			return fmt.Errorf("unmount %s: %w", fields[1], err)
		}
	}
	return errors.Join(os.RemoveAll(n.file("state")), os.MkdirAll(n.file("state"), 0o755))
}

// listen accepts orders on the socket until the context ends.
func (p *parts) listen(ctx context.Context) error {
	l, err := net.Listen("unix", p.spec.orders())
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.answer(ctx, c)
		}
	}()
	return nil
}

// done is the answer to an order that was carried out.
const done = "done"

// answer reads one order, a line, carries it out, and writes its error, or done.
func (p *parts) answer(ctx context.Context, c net.Conn) {
	defer c.Close()
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return
	}
	verb, name, _ := strings.Cut(strings.TrimSpace(line), " ")
	if err := p.order(ctx, verb, name); err != nil {
		fmt.Fprint(c, err)
		return
	}
	fmt.Fprint(c, done)
}

// ask sends the holder an order for each name, and waits until it is carried out.
func ask(s spec, verb string, names []string) error {
	if len(names) == 0 {
		return fmt.Errorf("%s: name a part", verb)
	}
	for _, name := range names {
		if err := s.ask(verb, name); err != nil {
			return err
		}
	}
	return nil
}

// ask sends the holder one order, and waits until it is carried out.
func (s spec) ask(verb, what string) error {
	c, err := net.Dial("unix", s.orders())
	if err != nil {
		return fmt.Errorf("no cluster is ready in %s: %w", s.Dir, err)
	}
	defer c.Close()
	_, err = fmt.Fprintf(c, "%s %s\n", verb, what)
	answer, problem := io.ReadAll(c)
	if err = errors.Join(err, problem); err != nil {
		return fmt.Errorf("the cluster ended: %w", err)
	}
	if string(answer) != done {
		return fmt.Errorf("%s %s: %s", verb, what, cmp.Or(string(answer), "the cluster ended"))
	}
	return nil
}
