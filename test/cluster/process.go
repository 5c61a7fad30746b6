//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func words(text string) command { return strings.Fields(text) }

// run runs the command to its end; its error contains the command's output.
func (c command) run() error {
	out, err := exec.Command(c[0], c[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(c, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// output runs the command to its end and returns its standard output, trimmed of white space.
func (c command) output() (string, error) {
	var problems strings.Builder
	e := exec.Command(c[0], c[1:]...)
	e.Stderr = &problems
	out, err := e.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(c, " "), err, strings.TrimSpace(problems.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

func runAll(list []command) error {
	for _, c := range list {
		if err := c.run(); err != nil {
			return err
		}
	}
	return nil
}

// A process is a part of the cluster that runs until the cluster ends.
type process struct {
	name string
	args command
	env  []string
	// cgroup is the cgroup of version 2 that it starts in, if the machine has that hierarchy; empty: its parent's.
	cgroup string
	ready  func(context.Context) error // waits until the process serves; nil: no wait
}

// tail returns the last five lines of a log, for an error.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return path + " ends with:\n" + strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// errEnded makes await give up: the process has ended and will not become ready.
var errEnded = errors.New("it ended")

// await calls ask every 200 ms until it returns nil or errEnded, for at most limit. Its error wraps the last one of
// ask.
func await(ctx context.Context, what string, limit time.Duration, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		if errors.Is(err, errEnded) {
			return fmt.Errorf("%s is not ready: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready (%w): %w", what, context.Cause(ctx), err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// healthy returns a function that waits, at most 2 minutes, until a URL answers with status 200.
func healthy(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		return await(ctx, url, 2*time.Minute, func() error {
			r, err := client.Get(url)
			if err != nil {
				return err
			}
			defer r.Body.Close()
			text, err := io.ReadAll(io.LimitReader(r.Body, 1000))
			if r.StatusCode != http.StatusOK {
				err = errors.Join(err, fmt.Errorf("%s: %s", r.Status, text))
			}
			return err
		})
	}
}

// cgroups returns a file of each hierarchy of version 1 that this machine has.
func cgroups() ([]string, error) { return filepath.Glob("/sys/fs/cgroup/*/cgroup.clone_children") }

// unifiedCgroups returns a file of the hierarchy of version 2 next to those, if the machine has it. It limits nothing;
// network plugins attach programs to it that see their node alone.
func unifiedCgroups() ([]string, error) { return filepath.Glob("/sys/fs/cgroup/unified/cgroup.procs") }

// makeCgroups makes the cgroup of a node's pods in every hierarchy.
func (s spec) makeCgroups(n node) error {
	files, err := cgroups()
	unified, err2 := unifiedCgroups()
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	for _, file := range append(files, unified...) {
		root := filepath.Dir(file)
		dir := root
		for _, part := range []string{s.cgroup(), n.Name} {
			parent := dir
			dir = filepath.Join(dir, part)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			if filepath.Base(root) != "cpuset" {
				continue
			}
			for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
				text, err := os.ReadFile(filepath.Join(parent, name))
				if err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// confine confines pods to PodCPUs, deepest cgroups first. It runs after the kubelets have started: they make these
// cgroups with all CPUs, and fail in a cgroup that lacks some.
func (s spec) confine() error {
	if s.PodCPUs == "" {
		return nil
	}
	for _, n := range s.nodes() {
		for _, part := range []string{"kubepods/burstable", "kubepods/besteffort", "kubepods", "."} {
			file := filepath.Join("/sys/fs/cgroup/cpuset", s.cgroup(), n.Name, part, "cpuset.cpus")
			if err := os.WriteFile(file, []byte(s.PodCPUs), 0o644); err != nil {
				return fmt.Errorf("-pod-cpus: %w", err)
			}
		}
	}
	return nil
}

// removeCgroups removes the cgroups of all nodes, deepest first. Their processes must have ended.
func (s spec) removeCgroups() error {
	tops, err := filepath.Glob("/sys/fs/cgroup/*/" + s.cgroup())
	if err != nil {
		return err
	}
	for _, top := range tops {
		if err := removeCgroup(top); err != nil {
			return err
		}
	}
	return nil
}

func removeCgroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeCgroup(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return os.Remove(dir)
}
