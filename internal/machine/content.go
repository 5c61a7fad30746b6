package machine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Content lists what a directory or a block device already contains. The list is empty, not nil, for a file system
// fresh from mkfs and for a device that was never used.
func Content(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return directoryContent(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	return deviceContent(f, size)
}

// maxEntries limits how many entries of a directory are read. A few suffice to show that it is in use.
const maxEntries = 16

// directoryContent lists a directory without lost+found, which mkfs makes, and without .snapshot, which some filers
// show in it.
func directoryContent(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	found, err := d.ReadDir(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	names := []string{}
	for _, e := range found {
		made := e.Name() == ".snapshot" || e.Name() == "lost+found" && empty(filepath.Join(dir, e.Name()))
		if !e.IsDir() || !made {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// empty reports whether a directory has no entries. A lost+found that only root may read counts as empty.
func empty(dir string) bool {
	found, err := os.ReadDir(dir)
	return len(found) == 0 && (err == nil || errors.Is(err, fs.ErrPermission))
}

// A signature identifies a file system, or another user of block devices, by a text at an offset.
type signature struct {
	name string
	at   int // bytes
	text string
}

// signatures lists the known signatures, with the offsets that libblkid of util-linux uses.
var signatures = []signature{
	{"an ext2, ext3 or ext4 file system", 0x438, "\x53\xef"}, {"an XFS file system", 0, "XFSB"},
	{"a Btrfs file system", 0x10040, "_BHRfS_M"},
	{"an F2FS file system", 0x400, "\x10\x20\xf5\xf2"},
	{"an LVM volume", 0x218, "LVM2 001"}, {"a LUKS volume", 0, "LUKS\xba\xbe"},
	{"a Ceph BlueStore", 0, "bluestore block device"}, {"swap space", 4086, "SWAPSPACE2"},
	{"a GPT partition table", 512, "EFI PART"}, {"an MBR partition table", 510, "\x55\xaa"},
}

// A part is a range of a device in bytes.
type part struct{ at, length int64 }

// parts returns the ranges of a device that are read after its first MiB: the places where copies of superblocks remain
// when the first is overwritten (VMFS at 1 MiB, ext4 at 8 and 128 MiB, Btrfs at 64 MiB and 256 GiB), and the last MiB.
func parts(size int64) []part {
	list := []part{{1 << 20, 4 << 10}, {8 << 20, 4 << 10}, {64 << 20, 4 << 10}, {128 << 20, 4 << 10}, {256 << 30, 4 << 10}}
	list = slices.DeleteFunc(list, func(p part) bool { return p.at+p.length > size })
	if last := max(size-(1<<20), 1<<20); last < size {
		list = append(list, part{last, size - last})
	}
	return list
}

// deviceContent lists what a device of size bytes contains. It looks for signatures, and for bytes other than 0 in its
// first MiB and in the ranges of parts.
func deviceContent(r io.ReaderAt, size int64) ([]string, error) {
	first, err := read(r, part{0, min(1<<20, size)})
	if err != nil {
		return nil, err
	}
	found := []string{}
	for _, s := range signatures {
		if len(first) >= s.at+len(s.text) && string(first[s.at:s.at+len(s.text)]) == s.text {
			found = append(found, s.name)
		}
	}
	if len(found) == 0 && !zero(first) {
		found = append(found, "data of an unknown kind in its first MiB")
	}
	for _, p := range parts(size) {
		text, err := read(r, p)
		if err != nil {
			return nil, err
		}
		if !zero(text) {
			found = append(found, fmt.Sprintf("data at %d MiB", p.at>>20))
		}
	}
	return found, nil
}

func read(r io.ReaderAt, p part) ([]byte, error) {
	text := make([]byte, p.length)
	n, err := r.ReadAt(text, p.at)
	if n == len(text) {
		err = nil
	}
	return text, err
}

func zero(text []byte) bool { return !slices.ContainsFunc(text, func(b byte) bool { return b != 0 }) }
