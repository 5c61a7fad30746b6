package fio

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/knotmeter/knotmeter/internal/family/storage"
	"github.com/knotmeter/knotmeter/internal/host"
)

// here returns this machine with a volume.
func here(t *testing.T, v host.Volume) host.Pair {
	t.Helper()
	if _, err := exec.LookPath("fio"); err != nil {
		t.Skip("fio is not installed on this machine")
	}
	return host.Pair{Client: host.NewLocal("here", netip.MustParseAddr("127.0.0.1"), nil), Volume: v}
}

// disk returns a directory on the disk of the working directory as a volume of a size in bytes.
func disk(t *testing.T, size int64) host.Volume {
	t.Helper()
	dir, err := os.MkdirTemp(".", "volume-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	dir, err = filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return host.Volume{Path: dir, Size: size}
}

// sh runs a command line that prepares a volume, as root.
func sh(t *testing.T, line string) string {
	t.Helper()
	out, err := exec.Command("sh", "-ec", line).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return strings.TrimSpace(string(out))
}

// mounted runs a command line that mounts something at "$DIR", and returns that directory.
func mounted(t *testing.T, line string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting takes root")
	}
	dir := t.TempDir()
	out, err := exec.Command("sh", "-ec", strings.ReplaceAll(line, "$DIR", dir)).CombinedOutput()
	if err != nil {
		t.Skipf("this machine does not: %s: %v\n%s", line, err, out)
	}
	t.Cleanup(func() {
		sh(t, "for i in 1 2 3 4 5 6 7 8 9; do umount "+dir+" && exit; sleep 0.3; done; umount -l "+dir)
	})
	return dir
}

// loop returns a loop device of mib MiB of memory, which is faster than any limit that a test sets.
func loop(t *testing.T, mib int) string {
	t.Helper()
	image := filepath.Join(mounted(t, "mount -t tmpfs tmpfs $DIR"), "image")
	script := "truncate -s " + strconv.Itoa(mib) + "M " + image + "; losetup -f --show " + image
	out, err := exec.Command("sh", "-ec", script).CombinedOutput()
	if err != nil {
		t.Skipf("this machine has no loop devices: %v: %s", err, out)
	}
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() { sh(t, "losetup -d "+device) })
	return device
}

func parsed(t *testing.T, name string) storage.Job {
	t.Helper()
	w, err := storage.Parse(name, "")
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// running lists the open files below path of all other processes.
func running(t *testing.T, path string) []string {
	t.Helper()
	var found []string
	files, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range files {
		to, err := os.Readlink(fd)
		if err == nil && strings.HasPrefix(to, path) && !strings.HasPrefix(fd, "/proc/"+strconv.Itoa(os.Getpid())+"/") {
			found = append(found, to)
		}
	}
	return found
}

// A slowed host starts each command in a control group that limits its I/O.
type slowed struct {
	*host.Local
	group string
}

func (s slowed) Run(ctx context.Context, c host.Cmd) error {
	c.Args = append([]string{"sh", "-c", `echo $$ > ` + s.group + `/cgroup.procs && exec "$@"`, "sh"}, c.Args...)
	return s.Local.Run(ctx, c)
}

// limited makes a control group that limits a device, in the version of control groups that this machine has for it.
func limited(t *testing.T, device string, iops, bytes int) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("control groups take root")
	}
	var stat syscall.Stat_t
	if err := syscall.Stat(device, &stat); err != nil {
		t.Fatal(err)
	}
	number := strconv.FormatUint(stat.Rdev>>8&0xfff, 10) + ":" + strconv.FormatUint(stat.Rdev&0xff|stat.Rdev>>12&0xfff00,
		10)
	name := "fio-test-" + strconv.Itoa(os.Getpid())
	group := "/sys/fs/cgroup/blkio/" + name
	files := map[string]string{}
	if _, err := os.Stat("/sys/fs/cgroup/blkio/blkio.throttle.read_iops_device"); err == nil {
		for _, way := range []string{"read", "write"} {
			files["blkio.throttle."+way+"_iops_device"] = number + " " + strconv.Itoa(iops)
			files["blkio.throttle."+way+"_bps_device"] = number + " " + strconv.Itoa(bytes)
		}
	} else if text, _ := os.ReadFile("/sys/fs/cgroup/cgroup.subtree_control"); strings.Contains(string(text), "io") {
		group = "/sys/fs/cgroup/" + name
		i, b := strconv.Itoa(iops), strconv.Itoa(bytes)
		files["io.max"] = number + " riops=" + i + " wiops=" + i + " rbps=" + b + " wbps=" + b
	} else {
		t.Skip("this machine has neither the blkio controller of control groups v1 nor the io controller of v2 " +
			"(CONFIG_BLK_DEV_THROTTLING)")
	}
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("no control group can be made here: %v", err)
	}
	t.Cleanup(func() { sh(t, "for i in 1 2 3 4 5 6 7 8 9; do rmdir "+group+" && exit; sleep 0.2; done; exit 1") })
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(group, file), []byte(text), 0); err != nil {
			t.Fatal(err)
		}
	}
	return group
}
