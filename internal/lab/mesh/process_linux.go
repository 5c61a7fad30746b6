package mesh

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/lab/userspace"
	"github.com/knotmeter/knotmeter/internal/result"
)

// StartHBONE starts an HBONE proxy in the network namespace of the calling thread, and returns when it listens. stop
// ends it.
func StartHBONE(n Node, i Identity) (stop func() error, err error) {
	text, err := settingsText(n, i)
	if err != nil {
		return nil, err
	}
	p, err := userspace.Start("the HBONE proxy", Command)
	if err != nil {
		return nil, err
	}
	if err := p.Configure(text); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p.Stop, nil
}

// FindHAProxy returns the path and the version of the HAProxy that is installed. The error Is result.ErrNotSupported if
// there is none.
func FindHAProxy() (path, ver string, err error) {
	path, err = exec.LookPath("haproxy")
	if err != nil {
		// Users without rights often have no directories of system programs in their PATH.
		if path, err = exec.LookPath("/usr/sbin/haproxy"); err != nil {
			return "", "", result.NotSupported("there is no haproxy here")
		}
	}
	output, err := exec.Command(path, "-v").Output()
	if err != nil {
		return "", "", fmt.Errorf("%s -v: %w", path, err)
	}
	ver, err = version(string(output))
	return path, ver, err
}

// listenTimeout is how long HAProxy may take to listen.
const listenTimeout = 10 * time.Second

// StartHAProxy starts the HAProxy of a node in the network namespace of the calling thread, and returns its version
// when it listens. stop ends it. Its files are in memory and only it has them.
func StartHAProxy(n Node, i Identity) (ver string, stop func() error, err error) {
	path, ver, err := FindHAProxy()
	if err != nil {
		return "", nil, err
	}
	names := files{identity: "/proc/self/fd/4", root: "/proc/self/fd/5"}
	var open []*os.File
	defer func() {
		for _, f := range open {
			_ = f.Close()
		}
	}()
	for _, content := range []string{configuration(n, names), string(i.certificate) + string(i.key), string(i.root)} {
		f, err := memoryFile(content)
		if err != nil {
			return "", nil, err
		}
		open = append(open, f)
	}
	var output bytes.Buffer
	cmd := exec.Command(path, "-db", "-f", "/proc/self/fd/3")
	cmd.Env, cmd.ExtraFiles, cmd.Stdout, cmd.Stderr = []string{}, open, &output, &output
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("start haproxy: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // stop kills it; an earlier end is found by what it does not carry
		close(ended)
	}()
	stop = func() error {
		err := cmd.Process.Kill()
		<-ended
		if errors.Is(err, os.ErrProcessDone) {
			return nil
		}
		return err
	}
	if err := awaitListener(n.Listen.String(), ended); err != nil {
		err = errors.Join(err, stop())
		return "", nil, fmt.Errorf("haproxy: %w: %s", err, strings.TrimSpace(output.String()))
	}
	return ver, stop, nil
}

// memoryFile returns a file that exists only in memory, until all processes have closed it.
func memoryFile(content string) (*os.File, error) {
	fd, err := unix.MemfdCreate("mesh", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "mesh")
	if _, err := f.WriteString(content); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// awaitListener waits until something listens at an address, in the network namespace of the calling thread.
func awaitListener(address string, ended <-chan struct{}) error {
	timeout := time.After(listenTimeout)
	for {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ended:
			return errors.New("it has ended")
		case <-timeout:
			return fmt.Errorf("it does not listen after %v: %w", listenTimeout, err)
		case <-time.After(time.Millisecond):
		}
	}
}
