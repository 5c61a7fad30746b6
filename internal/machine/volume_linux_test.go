package machine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

func TestMountOf(t *testing.T) {
	const info = `22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
23 22 0:21 / /tmp rw,nosuid - tmpfs tmpfs rw,size=8m
24 22 0:30 / /mnt/a\040b ro - nfs4 host:/x ro
25 23 7:0 / /tmp/x rw - xfs /dev/loop0 rw
26 23 7:1 / /tmp/x rw - ext4 /dev/loop1 rw
broken line
`
	for path, want := range map[string]Mount{
		"/":          {"/", "/", "ext4", "/dev/vda", "rw,relatime; rw,discard"},
		"/tmpfile":   {"/", "/", "ext4", "/dev/vda", "rw,relatime; rw,discard"},
		"/tmp/y":     {"/", "/tmp", "tmpfs", "tmpfs", "rw,nosuid; rw,size=8m"},
		"/mnt/a b/c": {"/", "/mnt/a b", "nfs4", "host:/x", "ro"},
		"/tmp/x/y":   {"/", "/tmp/x", "ext4", "/dev/loop1", "rw"},
	} {
		if got := mountOf(Mounts(info), path); got != want {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if got := mountOf(nil, "/"); got.backing("") != result.Unknown ||
		mountOf(Mounts(info), "/tmp").backing("") != "memory" || mountOf(Mounts(info), "/").backing("vda") != "disk" {
		t.Errorf("%+v", got)
	}
	for path, want := range map[string]bool{"/": false, "/tmp": false, "/mnt/a b": true} {
		m := mountOf(Mounts(info), path)
		if got := m.shared(map[string]string{"ext4": "vda"}[m.Kind]); got != want {
			t.Errorf("%s is shared: %t", path, got)
		}
	}
	if !(Mount{}).shared("") {
		t.Error("an unknown file system counts as not shared")
	}
}

// TestBlockDevices checks which block devices count as disks and which as rotating.
func TestBlockDevices(t *testing.T) {
	const unknown = result.Unknown
	for name, want := range map[string][2]string{
		"sda": {"disk", "yes"}, "nvme0n1": {"disk", "yes"}, "dm-0": {"disk", "yes"}, "vda1": {"disk", unknown},
		"xvda": {"disk", unknown}, "loop0": {unknown, unknown}, "zram0": {"memory", "yes"}, "ram1": {"memory", "yes"},
		"nbd0": {"network", "yes"}, "rbd0p1": {"network", "yes"}, "": {unknown, "yes"},
	} {
		if got := [2]string{(Mount{Kind: "ext4"}).backing(name), rotational(name, "1")}; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if got := rotational(name, "0"); got != "no" {
			t.Errorf("%s does not rotate: %q", name, got)
		}
	}
}

func TestDevice(t *testing.T) {
	sys := t.TempDir()
	disk := filepath.Join(sys, "devices/sda")
	for file, text := range map[string]string{"size": "2048\n", "device/model": "A disk \n",
		"queue/rotational": "1\n", "queue/scheduler": "none [bfq] kyber\n",
		"queue/write_cache": "write back\n", "queue/logical_block_size": "512\n",
		"queue/physical_block_size": "4096\n", "sda1/partition": "1\n"} {
		name := filepath.Join(disk, file)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(sys, "dev/block"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(disk, "sda1"), filepath.Join(sys, "dev/block/8:1")); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"device": "sda1 on sda", "device-size": "1.05 MB",
		"device-model": "A disk", "device-rotational": "yes", "device-scheduler": "bfq",
		"device-write-cache": "write back", "device-queue": result.Unknown, "device-blocks": "512 B logical, 4096 B physical"}
	for _, f := range device(sys, 8, 1) {
		if f.Value != want[f.Name] {
			t.Errorf("%s is %q, want %q", f.Name, f.Value, want[f.Name])
		}
	}
	for _, f := range device(sys, 9, 9) {
		if f.Value != result.Unknown {
			t.Errorf("%s of no device is %q", f.Name, f.Value)
		}
	}
}

func TestVolume(t *testing.T) {
	for _, path := range []string{t.TempDir(), "/", "/proc", "/no/such/place"} {
		seen := map[string]bool{}
		for _, f := range Volume(path) {
			if f.Name == "" || f.Value == "" || seen[f.Name] {
				t.Errorf("%s: %+v", path, f)
			}
			seen[f.Name] = true
		}
	}
}
