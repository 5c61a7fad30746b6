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

// Content names what is on a directory or a block device already; it is empty, and not nil, for one as fresh as mkfs
// or a provider makes it.
func Content(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return entries(path)
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
	return data(f, size)
}

// some are enough of what is in a directory to tell that it is somebody's.
const some = 16

// entries are what a directory has besides what mkfs makes, and the snapshots that some filers show in it.
func entries(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	found, err := d.ReadDir(some)
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

// empty says whether a directory has nothing in it; lost+found is often root's, and then nobody else can tell.
func empty(dir string) bool {
	found, err := os.ReadDir(dir)
	return len(found) == 0 && (err == nil || errors.Is(err, fs.ErrPermission))
}

// A signature is by what a file system, or anything else that keeps data on a device, is known.
type signature struct {
	name string
	at   int
	text string
}

// signatures are where util-linux' libblkid looks for them.
var signatures = []signature{
	{"an ext2, ext3 or ext4 file system", 0x438, "\x53\xef"}, {"an XFS file system", 0, "XFSB"},
	{"a Btrfs file system", 0x10040, "_BHRfS_M"},
	{"an F2FS file system", 0x400, "\x10\x20\xf5\xf2"},
	{"an LVM volume", 0x218, "LVM2 001"}, {"a LUKS volume", 0, "LUKS\xba\xbe"},
	{"a Ceph BlueStore", 0, "bluestore block device"}, {"swap space", 4086, "SWAPSPACE2"},
	{"a GPT partition table", 512, "EFI PART"}, {"an MBR partition table", 510, "\x55\xaa"},
}

// A part of a device.
type part struct{ at, length int64 }

// parts are what is read of a device behind its first MiB: where copies of superblocks are when the first is gone
// (VMFS at 1 MiB, ext4 at 8 and 128 MiB, Btrfs at 64 MiB and 256 GiB), and the last MiB.
func parts(size int64) []part {
	list := []part{{1 << 20, 4 << 10}, {8 << 20, 4 << 10}, {64 << 20, 4 << 10}, {128 << 20, 4 << 10}, {256 << 30, 4 << 10}}
	list = slices.DeleteFunc(list, func(p part) bool { return p.at+p.length > size })
	if last := max(size-(1<<20), 1<<20); last < size {
		list = append(list, part{last, size - last})
	}
	return list
}

// data names what a device has where anything that keeps data on one leaves a trace.
func data(r io.ReaderAt, size int64) ([]string, error) {
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
