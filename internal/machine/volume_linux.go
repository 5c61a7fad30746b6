package machine

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Volume returns facts about the file system and the disk of a directory, or about a block device. Facts that the
// machine does not report are unknown; a network file system has no device here.
func Volume(path string) []result.Fact {
	var stat unix.Stat_t
	if unix.Stat(path, &stat) != nil {
		return []result.Fact{{Name: "filesystem", Value: result.Unknown},
			{Name: "backing", Value: result.Unknown}, {Name: "device", Value: result.Unknown}}
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFBLK {
		major, minor := unix.Major(stat.Rdev), unix.Minor(stat.Rdev)
		facts := []result.Fact{{Name: "filesystem", Value: "none"},
			{Name: "backing", Value: blockBacking(blockName("/sys", major, minor))}}
		return append(facts, device("/sys", major, minor)...)
	}
	m, major, minor := mountAt(path, stat.Dev)
	facts := []result.Fact{
		{Name: "filesystem", Value: orUnknown(m.Kind)}, {Name: "backing", Value: m.backing(blockName("/sys", major, minor))},
		{Name: "mount-options", Value: orUnknown(m.Options)},
		{Name: "mount-source", Value: orUnknown(m.Source)},
		{Name: "volume-size", Value: result.Unknown}, {Name: "volume-free", Value: result.Unknown},
	}
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) == nil {
		facts[4].Value = unit.Format(float64(fs.Blocks)*float64(fs.Bsize), unit.Byte)
		facts[5].Value = unit.Format(float64(fs.Bavail)*float64(fs.Bsize), unit.Byte)
	}
	return append(facts, device("/sys", major, minor)...)
}

// FileSystem identifies the file system of a directory on this machine: two directories with the same free space have
// the same. It is empty if the directory cannot be looked at.
func FileSystem(path string) string {
	var stat unix.Stat_t
	if unix.Stat(path, &stat) != nil {
		return ""
	}
	_, major, minor := mountAt(path, stat.Dev)
	return fmt.Sprintf("%d:%d", major, minor)
}

// Shared reports whether other machines may use a directory's file system: true unless its data are known to be on this
// machine.
func Shared(path string) bool {
	var stat unix.Stat_t
	if unix.Stat(path, &stat) != nil {
		return true
	}
	m, major, minor := mountAt(path, stat.Dev)
	return m.shared(blockName("/sys", major, minor))
}

// mountAt returns the mount that a path is on and the numbers of its block device. dev is the device number from
// stat(2) of the path; major is 0 if there is no block device.
func mountAt(path string, dev uint64) (m Mount, major, minor uint32) {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		resolved = path
	}
	m = mountOf(Mounts(string(text)), resolved)
	major, minor = unix.Major(dev), unix.Minor(dev)
	// File systems such as btrfs have a device number of their own; the block device is their source.
	var source unix.Stat_t
	if major == 0 && strings.HasPrefix(m.Source, "/dev/") && unix.Stat(m.Source, &source) == nil {
		major, minor = unix.Major(source.Rdev), unix.Minor(source.Rdev)
	}
	return m, major, minor
}

func orUnknown(text string) string { return cmp.Or(strings.TrimSpace(text), result.Unknown) }

// networkKinds are file systems with their data on other machines.
var networkKinds = []string{
	"nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "9p", "virtiofs", "lustre", "afs", "fuse.glusterfs", "fuse.sshfs",
	"beegfs",
}

// backing returns in one word where the data are: memory, overlay, network, disk, or unknown. block is the name of the
// mount's block device, or "".
func (m Mount) backing(block string) string {
	switch {
	case m.Kind == "tmpfs" || m.Kind == "ramfs" || m.Kind == "devtmpfs" || m.Kind == "hugetlbfs":
		return "memory"
	case m.Kind == "overlay" || m.Kind == "aufs":
		return "overlay"
	case slices.Contains(networkKinds, m.Kind):
		return "network"
	}
	return blockBacking(block)
}

// blockBacking returns where the data of a block device are. A loop device is unknown, since its file may be anywhere.
func blockBacking(name string) string {
	begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	switch {
	case name == "", begins("loop"):
		return result.Unknown
	case begins("ram"), begins("zram"):
		return "memory"
	case begins("nbd"), begins("rbd"):
		return "network"
	}
	return "disk"
}

// blockName returns the kernel's name of a block device, or "" if there is none or it is not known.
func blockName(sys string, major, minor uint32) string {
	dir, err := filepath.EvalSymlinks(filepath.Join(sys, "dev/block", fmt.Sprintf("%d:%d", major, minor)))
	if err != nil {
		return ""
	}
	return filepath.Base(dir)
}

// shared reports whether other machines may use the mount's file system; block is the name of its block device, or "".
func (m Mount) shared(block string) bool {
	return !slices.Contains([]string{"memory", "overlay", "disk"}, m.backing(block))
}

// mountOf returns the mount that a path is on: the last of those with the longest mount point that contains the path.
func mountOf(mounts []Mount, path string) Mount {
	var best Mount
	for _, m := range mounts {
		within := m.Point == "/" || path == m.Point || strings.HasPrefix(path, m.Point+"/")
		if within && len(m.Point) >= len(best.Point) {
			best = m
		}
	}
	return best
}

// device returns the facts of a block device. For a partition they are those of the whole disk.
func device(sys string, major, minor uint32) []result.Fact {
	dir, err := filepath.EvalSymlinks(filepath.Join(sys, "dev/block", fmt.Sprintf("%d:%d", major, minor)))
	name := ""
	if err == nil {
		name = filepath.Base(dir)
		if _, err := os.Stat(filepath.Join(dir, "partition")); err == nil {
			dir = filepath.Dir(dir)
			name += " on " + filepath.Base(dir)
		}
	}
	read := func(files ...string) string {
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if name != "" && err == nil && strings.TrimSpace(string(text)) != "" {
				return strings.TrimSpace(string(text))
			}
		}
		return result.Unknown
	}
	size := result.Unknown
	if sectors, err := strconv.ParseFloat(read("size"), 64); err == nil {
		size = unit.Format(512*sectors, unit.Byte) // sysfs always counts sectors of 512 bytes
	}
	blocks := read("queue/logical_block_size") + " B logical, " + read("queue/physical_block_size") + " B physical"
	facts := []result.Fact{
		{Name: "device", Value: orUnknown(name)}, {Name: "device-size", Value: size},
		{Name: "device-model", Value: read("device/model", "dm/name", "loop/backing_file")},
		{Name: "device-rotational", Value: rotational(name, read("queue/rotational"))},
		{Name: "device-scheduler", Value: activeScheduler(read("queue/scheduler"))},
		{Name: "device-write-cache", Value: read("queue/write_cache")},
		{Name: "device-queue", Value: read("queue/nr_requests")},
		{Name: "device-blocks", Value: blocks},
	}
	if facts[2].Value == result.Unknown && name != "" {
		facts[2].Value = "none reported" // virtio disks have none
	}
	if read("queue/logical_block_size") == result.Unknown {
		facts[len(facts)-1].Value = result.Unknown
	}
	return facts
}

// rotational returns whether a device rotates: yes, no or unknown. The kernel's 1 is not trusted for virtual disks,
// which have it whenever the hypervisor reports nothing, nor for loop devices, which may be on such disks.
func rotational(name, text string) string {
	virtual := slices.ContainsFunc([]string{"vd", "xvd", "loop"},
		func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	switch {
	case text == "0":
		return "no"
	case text == "1" && !virtual:
		return "yes"
	}
	return result.Unknown
}

// activeScheduler returns the scheduler in brackets, such as mq-deadline in "none [mq-deadline] kyber". A text without
// brackets is returned unchanged.
func activeScheduler(text string) string {
	_, rest, ok := strings.Cut(text, "[")
	if name, _, closed := strings.Cut(rest, "]"); ok && closed {
		return name
	}
	return text
}
