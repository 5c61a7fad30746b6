//go:build unix

package machine

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A sparse is a device of zeros with texts at some offsets.
type sparse map[int64]string

func (s sparse) ReadAt(p []byte, at int64) (int, error) {
	clear(p)
	for place, text := range s {
		for i := range len(text) {
			if j := place + int64(i) - at; j >= 0 && j < int64(len(p)) {
				p[j] = text[i]
			}
		}
	}
	return len(p), nil
}

// TestDeviceContent checks that a device is empty only if no user of devices left a trace on it.
func TestDeviceContent(t *testing.T) {
	const size = 512 << 30
	for name, test := range map[string]struct {
		device sparse
		size   int64
		want   []string
	}{
		"zeros": {sparse{}, size, []string{}},
		"small": {sparse{}, 1 << 16, []string{}},
		"ext4":  {sparse{0x438: "\x53\xef"}, size, []string{"an ext2, ext3 or ext4 file system"}},
		"partitions": {sparse{510: "\x55\xaa", 512: "EFI PART"}, size,
			[]string{"a GPT partition table", "an MBR partition table"}},
		"LVM":          {sparse{0x218: "LVM2 001"}, size, []string{"an LVM volume"}},
		"a database's": {sparse{1000: "x"}, size, []string{"data of an unknown kind in its first MiB"}},
		"VMFS":         {sparse{1 << 20: "x"}, size, []string{"data at 1 MiB"}},
		"Btrfs, wiped": {sparse{64<<20 + 0x40: "_BHRfS_M"}, size, []string{"data at 64 MiB"}},
		"RAID":         {sparse{size - 8192: "x"}, size, []string{"data at 524287 MiB"}},
		"the very end": {sparse{3<<19 - 1: "x"}, 3 << 19, []string{"data at 1 MiB"}},
	} {
		got, err := deviceContent(test.device, test.size)
		if err != nil || got == nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, test.want)
		}
	}
}

// TestDirectoryContent checks that a directory with only what mkfs makes is empty, and with anything else is not.
func TestDirectoryContent(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"lost+found", ".snapshot"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Content(dir); err != nil || got == nil || len(got) > 0 {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "lost+found", "#12"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ledger"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Content(dir)
	slices.Sort(got)
	if err != nil || !slices.Equal(got, []string{"ledger", "lost+found"}) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := Content(filepath.Join(dir, "none")); err == nil {
		t.Errorf("%q", got)
	}
}

// TestFormatted checks that the signatures of file systems from mkfs itself are found.
func TestFormatted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "device")
	for program, want := range map[string]string{"mkfs.ext4": "ext4", "mkfs.xfs": "XFS"} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, 320<<20); err != nil {
			t.Fatal(err)
		}
		if got, err := Content(file); err != nil || len(got) > 0 {
			t.Errorf("zeros: %q, %v", got, err)
		}
		if out, err := exec.Command(program, file).CombinedOutput(); err != nil {
			t.Logf("%s: %v: %s", program, err, out)
			continue
		}
		if got, err := Content(file); err != nil || len(got) == 0 || !strings.Contains(got[0], want) {
			t.Errorf("%s: %q, %v", program, got, err)
		}
	}
}
