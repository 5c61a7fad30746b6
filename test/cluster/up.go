//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// up starts the cluster in the background and waits until it is ready. What is in the way is a cluster
// that runs already; what a crash left is removed.
func up(ctx context.Context, s spec) error {
	if pid, err := s.pid(); err == nil && alive(pid) {
		return fmt.Errorf("a cluster runs already in %s (process %d); `cluster down` stops it", s.Dir, pid)
	}
	if os.Geteuid() != 0 {
		return errors.New("root is needed: kubelets and container runtimes work with cgroups, mounts and networks")
	}
	if err := build(ctx, s); err != nil {
		return err
	}
	if err := down(s); err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	if err := s.writeFiles(); err != nil {
		return err
	}
	pid, err := s.launch()
	if err != nil {
		return err
	}
	if err := runAll(uplinks(pid)); err != nil {
		return errors.Join(err, down(s))
	}
	err = await(ctx, "the cluster", 5*time.Minute, func() error {
		if !alive(pid) {
			return errOver
		}
		_, err := os.Stat(s.ready())
		return err
	})
	if err != nil {
		return errors.Join(err, errors.New(tail(s.file("hold.log"))), down(s))
	}
	fmt.Printf("ready: export KUBECONFIG=%s\n", s.kubeconfig())
	return nil
}

// launch starts PID 1 of the cluster's own namespaces, which outlives this process.
func (s spec) launch() (int, error) {
	log, err := os.Create(s.file("hold.log"))
	if err != nil {
		return 0, err
	}
	defer log.Close()
	c := exec.Command("/proc/self/exe", s.again("init")...)
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Setsid:     true,
	}
	if err := c.Start(); err != nil {
		return 0, err
	}
	pid := c.Process.Pid
	go func() { _ = c.Wait() }() // so that alive sees it end
	return pid, os.WriteFile(s.file("pid"), []byte(strconv.Itoa(pid)), 0o600)
}

// pid is the process that holds the cluster.
func (s spec) pid() (int, error) {
	text, err := os.ReadFile(s.file("pid"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// alive says whether a process is PID 1 of a cluster: its number may be another's by now.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && strings.Contains(string(text), "\x00init\x00-dir\x00")
}

// down ends the cluster and removes what is left of it.
func down(s spec) error {
	pid, err := s.pid()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && alive(pid) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return err
		}
	}
	err = await(context.Background(), "the end of the cluster", 30*time.Second, func() error {
		if pid != 0 && alive(pid) {
			return fmt.Errorf("process %d runs still", pid)
		}
		return removeCgroups()
	})
	if err != nil {
		return err
	}
	// The kernel removes the network once the last connection in it has timed out, which takes a minute.
	if _, err := net.InterfaceByName(uplink); err == nil {
		if err := words("ip link delete " + uplink).run(); err != nil {
			return err
		}
	}
	return os.RemoveAll(s.Dir)
}

func status(s spec) error {
	pid, err := s.pid()
	if err != nil || !alive(pid) {
		return fmt.Errorf("no cluster runs in %s", s.Dir)
	}
	if _, err := os.Stat(s.ready()); err != nil {
		return errors.New("the cluster is starting; " + tail(s.file("hold.log")))
	}
	return kubectl(s, []string{"get", "nodes", "-o", "wide"})
}

// kubectl becomes kubectl.
func kubectl(s spec, args []string) error {
	c := s.kubectl(args...)
	return syscall.Exec(c[0], c, os.Environ())
}

// load imports an image archive on every node.
func load(ctx context.Context, s spec, files []string) error {
	if len(files) == 0 {
		return errors.New("load: name an image archive")
	}
	for _, n := range s.nodes() {
		if _, err := os.Stat(n.Dir); err != nil {
			continue
		}
		for _, file := range files {
			if err := s.ctr(n, "images", "import", file).run(); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	return nil
}
