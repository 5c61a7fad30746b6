//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// volumes is where the files are that volumes are made from.
func (s spec) volumes() string { return s.file("volumes") }

// storageClasses are the classes of volumes on loop devices. New ext4 file systems would write in the background for
// a while; these do not.
func storageClasses() []any {
	class := func(name, fs, reclaim string, options ...string) map[string]any {
		return map[string]any{
			"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": map[string]any{"name": name},
			"provisioner": "test.knotmeter.dev/loop", "volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": reclaim,
			"parameters": map[string]string{"fsType": fs}, "mountOptions": options,
		}
	}
	return []any{
		class("loop-ext4", "ext4", "Delete", "noinit_itable"), class("loop-xfs", "xfs", "Delete"), class("loop-retain", "ext4", "Retain", "noinit_itable"),
	}
}

// A loop is a loop device and the file that it is on.
type loop struct{ device, file string }

// parseLoops reads what losetup lists: a device and its file in each line. A file that is gone says so at its end.
func parseLoops(text string) []loop {
	var list []loop
	for line := range strings.Lines(text) {
		device, file, found := strings.Cut(strings.TrimSpace(line), " ")
		if found {
			list = append(list, loop{device, strings.TrimSuffix(strings.TrimSpace(file), " (deleted)")})
		}
	}
	return list
}

// loops are the devices that are on files of the cluster.
func (s spec) loops() ([]loop, error) {
	text, err := words("losetup --list --noheadings --raw --output NAME,BACK-FILE").output()
	if err != nil {
		return nil, err
	}
	ours := func(l loop) bool { return !strings.HasPrefix(strings.ReplaceAll(l.file, `\x20`, " "), s.Dir+"/") }
	return slices.DeleteFunc(parseLoops(text), ours), nil
}

// removeLoops detaches the cluster's devices. One that is in use goes with the last use; it is an error until then.
func (s spec) removeLoops() error {
	list, err := s.loops()
	if err != nil {
		return err
	}
	for _, l := range list {
		if err := (command{"losetup", "--detach", l.device}).run(); err != nil {
			return err
		}
	}
	if list, err = s.loops(); err == nil && len(list) > 0 {
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
	iops := set.Int64("iops", 0, "reads a second, and as many writes")
	size := set.String("bps", "0", "bytes read a second, and as many written: 50M, 1Gi")
	off := set.Bool("off", false, "no limit any more")
	namespace := set.String("n", "default", "the namespace of the claim")
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

// device is the loop device of a volume, or of the volume of a claim.
func (s spec) device(name, namespace string) (string, error) {
	claimed, err := s.kubectl("get", "pvc", name, "-n", namespace, "--ignore-not-found", "-o", "jsonpath={.spec.volumeName}").output()
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

// parseSize reads a number of bytes: 512, 50M, 1Gi.
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
