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

// Volume has the facts of what a directory, or a block device, of this machine is on. What the machine does not tell is
// unknown: a file system over the network has no device here.
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
		{Name: "filesystem", Value: known(m.Kind)}, {Name: "backing", Value: m.backing(blockName("/sys", major, minor))},
		{Name: "mount-options", Value: known(m.Options)},
		{Name: "mount-source", Value: known(m.Source)},
		{Name: "volume-size", Value: result.Unknown}, {Name: "volume-free", Value: result.Unknown},
	}
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) == nil {
		facts[4].Value = unit.Format(float64(fs.Blocks)*float64(fs.Bsize), unit.Byte)
		facts[5].Value = unit.Format(float64(fs.Bavail)*float64(fs.Bsize), unit.Byte)
	}
	return append(facts, device("/sys", major, minor)...)
}

// Shared reports whether other machines may use the file system of a directory: its data is not known to be here.
func Shared(path string) bool {
	var stat unix.Stat_t
	if unix.Stat(path, &stat) != nil {
		return true
	}
	m, major, minor := mountAt(path, stat.Dev)
	return m.shared(blockName("/sys", major, minor))
}

// mountAt is the mount that a path is on, and the numbers of the block device behind it, of which the path has dev; the
// first is 0 if there is none.
func mountAt(path string, dev uint64) (m Mount, major, minor uint32) {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		resolved = path
	}
	m = mountOf(Mounts(string(text)), resolved)
	major, minor = unix.Major(dev), unix.Minor(dev)
	// File systems such as btrfs have a number of their own; what they are on they name.
	var source unix.Stat_t
	if major == 0 && strings.HasPrefix(m.Source, "/dev/") && unix.Stat(m.Source, &source) == nil {
		major, minor = unix.Major(source.Rdev), unix.Minor(source.Rdev)
	}
	return m, major, minor
}

func known(text string) string { return cmp.Or(strings.TrimSpace(text), result.Unknown) }

// networkKinds are file systems whose data is elsewhere.
var networkKinds = []string{
	"nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "9p", "virtiofs", "lustre", "afs", "fuse.glusterfs", "fuse.sshfs",
	"beegfs",
}

// backing is in a word what keeps the data, by the name of the block device; empty if there is none.
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

// blockBacking is what keeps the data of a block device. Behind that of a loop is a file, which may be anywhere.
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

// blockName is what the kernel calls a block device; empty if there is none, or if that is not known.
func blockName(sys string, major, minor uint32) string {
	dir, err := filepath.EvalSymlinks(filepath.Join(sys, "dev/block", fmt.Sprintf("%d:%d", major, minor)))
	if err != nil {
		return ""
	}
	return filepath.Base(dir)
}

// shared reports whether other machines may use it.
func (m Mount) shared(block string) bool {
	return !slices.Contains([]string{"memory", "overlay", "disk"}, m.backing(block))
}

// mountOf is the mount that a path is on: the last one whose mount point is the longest that the path begins with.
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

// device has the facts of a block device, of the whole disk where it is a partition.
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
		size = unit.Format(512*sectors, unit.Byte) // sysfs counts in these whatever the device's are
	}
	blocks := read("queue/logical_block_size") + " B logical, " + read("queue/physical_block_size") + " B physical"
	facts := []result.Fact{
		{Name: "device", Value: known(name)}, {Name: "device-size", Value: size},
		{Name: "device-model", Value: read("device/model", "dm/name", "loop/backing_file")},
		{Name: "device-rotational", Value: rotational(name, read("queue/rotational"))},
		{Name: "device-scheduler", Value: chosen(read("queue/scheduler"))},
		{Name: "device-write-cache", Value: read("queue/write_cache")},
		{Name: "device-queue", Value: read("queue/nr_requests")},
		{Name: "device-blocks", Value: blocks},
	}
	if facts[2].Value == result.Unknown && name != "" {
		facts[2].Value = "none told" // as by virtio disks
	}
	if read("queue/logical_block_size") == result.Unknown {
		facts[len(facts)-1].Value = result.Unknown
	}
	return facts
}

// rotational says whether a device rotates. The kernel says so of all disks of a hypervisor that do not tell, and of
// loops on them.
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

// chosen is the one in brackets of "none [mq-deadline] kyber".
func chosen(text string) string {
	_, rest, ok := strings.Cut(text, "[")
	if name, _, closed := strings.Cut(rest, "]"); ok && closed {
		return name
	}
	return text
}
