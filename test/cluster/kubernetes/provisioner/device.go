package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// devices manages loop devices on files in a directory.
type devices struct{ dir string }

// A device is a loop device.
type device struct {
	path   string // /dev/loop3
	file   string // file that the device is on
	direct bool   // its reads and writes bypass the page cache
}

func (d devices) file(name string) string { return filepath.Join(d.dir, name+".img") }

// make makes a device of size bytes, or returns the one that was made before. Every block of its file is allocated, so
// no write waits for an allocation, and stays so: the device does not support discard, by which mkfs would free blocks.
func (d devices) make(ctx context.Context, name string, size int64) (device, error) {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return device{}, err
	}
	file := d.file(name)
	if err := allocate(file, size); err != nil {
		return device{}, err
	}
	path, err := attachedDevice(ctx, file)
	if err != nil {
		return device{}, err
	}
	if path == "" {
		if path, err = losetup(ctx, "--find", "--show", file); err != nil {
			return device{}, err
		}
	}
	_, notDirect := losetup(ctx, "--direct-io=on", path) // the file system may not support it
	queue := filepath.Join("/sys/block", filepath.Base(path), "queue/discard_max_bytes")
	if err := os.WriteFile(queue, []byte("0"), 0o644); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return device{}, err
	}
	return device{path: path, file: file, direct: notDirect == nil}, nil
}

// allocate makes a file of size bytes with all its blocks; none is left if there is no room.
func allocate(file string, size int64) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	err = syscall.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, syscall.EOPNOTSUPP) {
		err = f.Truncate(size)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("no space for a file of %d bytes: %w", size, err), os.Remove(file))
	}
	return nil
}

// attachedDevice returns the device that is on the file; empty if there is none.
func attachedDevice(ctx context.Context, file string) (string, error) {
	out, err := losetup(ctx, "--list", "--noheadings", "--output", "NAME", "--associated", file)
	name, _, _ := strings.Cut(out, "\n")
	return name, err
}

// remove removes a device and its file. The kernel detaches a device in use at its last use.
func (d devices) remove(ctx context.Context, name string) error {
	file := d.file(name)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	path, err := attachedDevice(ctx, file)
	if err != nil {
		return err
	}
	if path != "" {
		if _, err := losetup(ctx, "--detach", path); err != nil {
			return err
		}
	}
	return os.Remove(file)
}

func losetup(ctx context.Context, args ...string) (string, error) {
	var problems strings.Builder
	c := exec.CommandContext(ctx, "losetup", args...)
	c.Stderr = &problems
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("losetup %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(problems.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
