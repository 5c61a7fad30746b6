package machine

import (
	"bufio"
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
		facts := []result.Fact{{Name: "filesystem", Value: "none"}, {Name: "backing", Value: "disk"}}
		return append(facts, device("/sys", unix.Major(stat.Rdev), unix.Minor(stat.Rdev))...)
	}
	text, _ := os.ReadFile("/proc/self/mountinfo")
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		resolved = path
	}
	m := mountOf(string(text), resolved)
	major, minor := unix.Major(stat.Dev), unix.Minor(stat.Dev)
	// File systems such as btrfs have a number of their own; what they are on they name.
	var source unix.Stat_t
	if major == 0 && strings.HasPrefix(m.source, "/dev/") && unix.Stat(m.source, &source) == nil {
		major, minor = unix.Major(source.Rdev), unix.Minor(source.Rdev)
	}
	facts := []result.Fact{
		{Name: "filesystem", Value: known(m.kind)}, {Name: "backing", Value: m.backing(major)},
		{Name: "mount-options", Value: known(m.options)},
		{Name: "mount-source", Value: known(m.source)},
		{Name: "volume-size", Value: result.Unknown}, {Name: "volume-free", Value: result.Unknown},
	}
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) == nil {
		facts[4].Value = unit.Format(float64(fs.Blocks)*float64(fs.Bsize), unit.Byte)
		facts[5].Value = unit.Format(float64(fs.Bavail)*float64(fs.Bsize), unit.Byte)
	}
	return append(facts, device("/sys", major, minor)...)
}

func known(text string) string {
	if strings.TrimSpace(text) == "" {
		return result.Unknown
	}
	return strings.TrimSpace(text)
}

// A mount is a line of mountinfo.
type mount struct{ point, kind, source, options string }

// backing is in a word what keeps the data.
func (m mount) backing(major uint32) string {
	network := []string{"nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs",
		"9p", "virtiofs", "lustre", "afs", "fuse.glusterfs", "fuse.sshfs", "beegfs"}
	switch {
	case m.kind == "tmpfs" || m.kind == "ramfs" || m.kind == "devtmpfs" || m.kind == "hugetlbfs":
		return "memory"
	case m.kind == "overlay" || m.kind == "aufs":
		return "overlay"
	case slices.Contains(network, m.kind):
		return "network"
	case major != 0:
		return "disk"
	}
	return result.Unknown
}

// mountOf is the mount that a path is on: the last one whose mount point is the longest that the path begins with.
func mountOf(mountinfo, path string) mount {
	var best mount
	lines := bufio.NewScanner(strings.NewReader(mountinfo))
	for lines.Scan() {
		// 36 35 98:0 /root /point rw,noatime master:1 - ext3 /dev/root rw,errors=continue (proc(5))
		before, after, ok := strings.Cut(lines.Text(), " - ")
		b, a := strings.Fields(before), strings.Fields(after)
		if !ok || len(b) < 6 || len(a) < 2 {
			continue
		}
		m := mount{point: unescape(b[4]), kind: a[0], source: unescape(a[1]), options: b[5]}
		if len(a) > 2 && a[2] != b[5] {
			m.options += "; " + a[2]
		}
		within := m.point == "/" || path == m.point || strings.HasPrefix(path, m.point+"/")
		if within && len(m.point) >= len(best.point) {
			best = m
		}
	}
	return best
}

// unescape undoes the kernel's \040 for a space.
func unescape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
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
		{Name: "device-rotational", Value: yesNo(read("queue/rotational"))},
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

func yesNo(text string) string {
	switch text {
	case "0":
		return "no"
	case "1":
		return "yes"
	}
	return text
}

// chosen is the one in brackets of "none [mq-deadline] kyber".
func chosen(text string) string {
	_, rest, ok := strings.Cut(text, "[")
	if name, _, closed := strings.Cut(rest, "]"); ok && closed {
		return name
	}
	return text
}
