//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
	"syscall"
)

// volumes returns the directory of the volumes' files.
func (s spec) volumes() string { return s.file("volumes") }

// storageClasses returns the classes of volumes on loop devices. The option noinit_itable keeps a new ext4 file system
// from writing in the background.
func storageClasses() []any {
	class := func(name, fs, reclaim string, options ...string) map[string]any {
		return map[string]any{
			"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": map[string]any{"name": name},
			"provisioner": "test.knotmeter.dev/loop", "volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": reclaim,
			"parameters": map[string]string{"fsType": fs}, "mountOptions": options,
		}
	}
	return []any{
		class("loop-ext4", "ext4", "Delete", "noinit_itable"), class("loop-xfs", "xfs", "Delete"),
		class("loop-retain", "ext4", "Retain", "noinit_itable"),
	}
}

// A loop is a loop device and its backing file. For a block volume the kubelet attaches a second loop device to the
// first; its path ends with its mounts, but its inode stays.
type loop struct {
	device string
	inode  uint64
	file   string
}

// parseLoops parses the list of losetup: a device, and the inode and path of its file, marked if the file is deleted.
func parseLoops(text string) ([]loop, error) {
	var list []loop
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(fields) < 3 {
			continue // it was detached just now
		}
		inode, err := strconv.ParseUint(fields[1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("losetup lists %q: %w", line, err)
		}
		file := strings.TrimSuffix(strings.ReplaceAll(fields[2], `\x20`, " "), " (deleted)")
		list = append(list, loop{fields[0], inode, file})
	}
	return list, nil
}

// below returns the loops on files in a directory, each after the loops on it.
func below(dir string, list []loop, inodeOf func(device string) uint64) []loop {
	var found []loop
	for _, l := range list {
		if !strings.HasPrefix(l.file, dir+"/") {
			continue
		}
		for _, outer := range list {
			if inodeOf(l.device) == outer.inode && !strings.HasPrefix(outer.file, dir+"/") &&
				strings.Count(outer.file, "/") == 1 {
				found = append(found, outer)
			}
		}
		found = append(found, l)
	}
	return found
}

// deviceInode returns the inode of a device file; 0 if there is none.
func deviceInode(device string) uint64 {
	var s syscall.Stat_t
	if syscall.Stat(device, &s) != nil {
		return 0
	}
	return s.Ino
}

// loopsBelow returns the machine's loops on files in a directory, each after the loops on it.
func loopsBelow(dir string) ([]loop, error) {
	text, err := words("losetup --list --noheadings --raw --output NAME,BACK-INO,BACK-FILE").output()
	if err != nil {
		return nil, err
	}
	list, err := parseLoops(text)
	return below(dir, list, deviceInode), err
}

// removeLoops detaches the loops on files in a directory. The kernel detaches one in use at its last use; until then
// removeLoops returns an error.
func removeLoops(dir string) error {
	list, err := loopsBelow(dir)
	if err != nil {
		return err
	}
	for _, l := range list {
		if err := (command{"losetup", "--detach", l.device}).run(); err != nil {
			return err
		}
	}
	if list, err = loopsBelow(dir); err == nil && len(list) > 0 {
		err = fmt.Errorf("%s on %s is in use", list[0].device, list[0].file)
	}
	return err
}

// throttle limits the device of a volume or claim.
func throttle(s spec, args []string) error {
	const how = "throttle: name a volume or a claim, and then -iops, -bps or -off"
	if len(args) == 0 {
		return errors.New(how)
	}
	set := flag.NewFlagSet("throttle", flag.ContinueOnError)
	iops := set.Int64("iops", 0, "reads per second, and as many writes")
	size := set.String("bps", "0", "bytes read per second, and as many written: 50M, 1Gi")
	off := set.Bool("off", false, "remove the limit")
	namespace := set.String("n", "default", "namespace of the claim")
	if err := set.Parse(args[1:]); err != nil {
		return err
	}
	bps, err := parseSize(*size)
	if err != nil {
		return fmt.Errorf("-bps: %w", err)
	}
	if *iops < 0 || *off == (*iops > 0 || bps > 0) {
		return errors.New(how)
	}
	device, err := s.device(args[0], *namespace)
	if err != nil {
		return err
	}
	return s.ask("throttle", fmt.Sprintf("%s %d %d", device, *iops, bps))
}

// device returns the loop device of a volume, or of the volume of a claim.
func (s spec) device(name, namespace string) (string, error) {
	claimed, err := s.kubectl("get", "pvc", name, "-n", namespace,
		"--ignore-not-found", "-o", "jsonpath={.spec.volumeName}").output()
	if err != nil {
		return "", err
	}
	if claimed != "" {
		name = claimed
	}
	device, err := s.kubectl("get", "pv", name, "-o", "jsonpath={.spec.local.path}").output()
	if err == nil && !strings.HasPrefix(device, "/dev/loop") {
		err = fmt.Errorf("volume %s is not on a loop device", name)
	}
	return device, err
}

// parseSize parses a number of bytes: 512, 50M, 1Gi.
func parseSize(text string) (int64, error) {
	number := strings.TrimRight(text, "KMGi")
	factors := map[string]int64{"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
	factor, known := factors[text[len(number):]]
	n, err := strconv.ParseInt(number, 10, 64)
	if !known || err != nil || n < 0 || n > math.MaxInt64/factor {
		return 0, fmt.Errorf("%q is not a number of bytes as in 50M or 1Gi", text)
	}
	return n * factor, nil
}
