//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// up starts the cluster in the background and waits until it is ready. It removes what a crash left, and returns an
// error if the cluster runs already.
func up(ctx context.Context, s spec) error {
	if h, found := s.holder(); found {
		return fmt.Errorf("cluster %d runs already in %s (process %d); `cluster down` stops it", s.ID, h.dir, h.pid)
	}
	if err := checkMachine(); err != nil {
		return err
	}
	if err := s.plugin().checkSupport(); err != nil {
		return fmt.Errorf("the network %s cannot be had here: %w", s.Network, err)
	}
	if err := build(ctx, s, s.programs()...); err != nil {
		return err
	}
	if err := down(s); err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	if err := errors.Join(s.save(), s.writeFiles()); err != nil {
		return err
	}
	pid, err := s.launch()
	if err != nil {
		return err
	}
	if err := runAll(s.uplinks(pid)); err != nil {
		return errors.Join(err, down(s))
	}
	err = await(ctx, "the cluster", 5*time.Minute, func() error {
		if _, found := s.holder(); !found {
			return errEnded
		}
		_, err := os.Stat(s.ready())
		return err
	})
	if err != nil {
		return errors.Join(err, errors.New(tail(s.file("hold.log"))), down(s))
	}
	if err := s.confine(); err != nil {
		return errors.Join(err, down(s))
	}
	fmt.Printf("ready: export KUBECONFIG=%s\n", s.kubeconfig())
	return nil
}

// checkMachine returns an error that names what every cluster needs and this machine lacks.
func checkMachine() error {
	if os.Geteuid() != 0 {
		return errors.New("root is needed: kubelets and container runtimes work with cgroups, mounts and networks")
	}
	files, err := cgroups()
	if err == nil && len(files) == 0 {
		err = errors.New("there are no cgroups of version 1 below /sys/fs/cgroup, which the nodes are made with")
	}
	if err != nil {
		return err
	}
	for tool, debian := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("there is no %s: apt-get install %s", tool, debian)
		}
	}
	return nil
}

// tools holds the programs that are not built here, each with its Debian package.
var tools = map[string]string{
	"go": "golang", "runc": "runc", "iptables": "iptables",
	"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux", "losetup": "util-linux",
	"mount": "mount", "sysctl": "procps", "mkfs.ext4": "e2fsprogs", "mkfs.xfs": "xfsprogs",
}

// launch starts PID 1 of the cluster's own namespaces, which outlives this process, and returns its PID. Users and
// tests find it in the file pid.
func (s spec) launch() (int, error) {
	log, err := os.Create(s.file("hold.log"))
	if err != nil {
		return 0, err
	}
	defer log.Close()
	c := exec.Command("/proc/self/exe", s.selfArgs(asInit)...)
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS |
			syscall.CLONE_NEWIPC,
		Setsid: true,
	}
	if err := c.Start(); err != nil {
		return 0, err
	}
	pid := c.Process.Pid
	go func() { _ = c.Wait() }() // reaps it, so that it does not remain as a zombie
	return pid, os.WriteFile(s.file("pid"), []byte(strconv.Itoa(pid)), 0o600)
}

// selfArgs returns the arguments by which this program runs a command for the same cluster. heldDir recognizes them.
func (s spec) selfArgs(name string) []string {
	return []string{name, "-id", strconv.Itoa(s.ID), "-dir", s.Dir}
}

// A holder is PID 1 of a running cluster: when it ends, the cluster ends.
type holder struct {
	pid int
	dir string
}

// holder finds the holder of the cluster with this ID, in any directory.
func (s spec) holder() (holder, bool) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it ended
		}
		dir, found := heldDir(string(text), s.ID)
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if found && err == nil {
			return holder{pid, dir}, true
		}
	}
	return holder{}, false
}

// heldDir returns the directory of the cluster whose holder has this command line; false if it is no holder of cluster
// id.
func heldDir(cmdline string, id int) (string, bool) {
	_, rest, found := strings.Cut(cmdline, fmt.Sprintf("\x00%s\x00-id\x00%d\x00-dir\x00", asInit, id))
	dir, _, ended := strings.Cut(rest, "\x00")
	return dir, found && ended
}

// down ends the cluster and removes its leftovers.
func down(s spec) error {
	h, found := s.holder()
	if found && h.dir != s.Dir {
		return fmt.Errorf("cluster %d runs in %s, not in %s", s.ID, h.dir, s.Dir)
	}
	if found {
		if err := syscall.Kill(h.pid, syscall.SIGKILL); err != nil {
			return err
		}
	}
	err := await(context.Background(), "the end of the cluster", 30*time.Second, func() error {
		if h, found := s.holder(); found {
			return fmt.Errorf("process %d runs still", h.pid)
		}
		return errors.Join(s.removeCgroups(), removeLoops(s.Dir))
	})
	if err != nil {
		return err
	}
	// The kernel removes the network once the last connection in it has timed out, which takes a minute.
	if err := words("ip link delete " + s.uplink()).run(); err != nil && s.uplinkExists() {
		return err
	}
	return os.RemoveAll(s.Dir)
}

// uplinkExists reports whether the link to the cluster exists. The kernel may remove it at any time after the end.
func (s spec) uplinkExists() bool {
	_, err := net.InterfaceByName(s.uplink())
	return err == nil
}

// status prints the nodes, and returns an error if the cluster is not ready.
func status(s spec) error {
	if h, found := s.holder(); !found || h.dir != s.Dir {
		return fmt.Errorf("no cluster runs in %s", s.Dir)
	}
	if _, err := os.Stat(s.ready()); err != nil {
		return errors.New("the cluster is starting; " + tail(s.file("hold.log")))
	}
	return kubectl(s, []string{"get", "nodes", "-o", "wide"})
}

// kubectl replaces this process with kubectl.
func kubectl(s spec, args []string) error {
	c := s.kubectl(args...)
	return syscall.Exec(c[0], c, os.Environ())
}

// load imports image archives on every node.
func load(s spec, files []string) error {
	if len(files) == 0 {
		return errors.New("load: name an image archive")
	}
	var list []command
	for _, n := range s.nodes() {
		for _, file := range files {
			list = append(list, s.load(n, file))
		}
	}
	return runAll(list)
}
