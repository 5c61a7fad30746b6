package cli

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// volumeDir returns a new directory next to the test, whose file system supports direct I/O.
func volumeDir(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("fio"); err != nil {
		t.Skip("fio is not installed on this machine")
	}
	dir, err := os.MkdirTemp(".", "volume-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if dir, err = filepath.Abs(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestStorageKilled kills the program while fio runs: fio ends with it, and clean finds the file.
func TestStorageKilled(t *testing.T) {
	experiments(t)
	for _, moment := range []time.Duration{300 * time.Millisecond, 1500 * time.Millisecond, 4 * time.Second} {
		t.Run(moment.String(), func(t *testing.T) {
			t.Parallel()
			killWithVolume(t, moment)
		})
	}
}

// killWithVolume kills the program the given time after the first file appeared on the volume.
func killWithVolume(t *testing.T, moment time.Duration) {
	dir := volumeDir(t)
	p := start(t, "run", "--target", "local:"+dir+"?size=64MiB", "--case",
		"storage/randrw50-4k-qd4-jobs2", "--duration", "2m", "--out", "out",
		"--progress", "none")
	for deadline := time.Now().Add(timeout); len(entries(t, dir)) == 0 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(moment)
	p.kill(t, "with a volume")
	for deadline := time.Now().Add(5 * time.Second); len(p.processes(t)) > 0 && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	if left := p.processes(t); len(left) > 0 {
		t.Errorf("five seconds later there is still %v", left)
	}
	left := entries(t, dir)
	if len(left) != 1 || !strings.HasPrefix(filepath.Base(left[0]), "knotmeter-") {
		t.Fatalf("left are %v\n%s", left, &p.output)
	}
	status, out := execute(t, "clean", "--target", "local:"+dir)
	if status != statusDone || !strings.Contains(out, "removed "+left[0]) || len(entries(t, dir)) > 0 {
		t.Errorf("clean: status %d, %s; left are %v", status, out, entries(t, dir))
	}
}

// TestStorageInterrupt ends a storage experiment by SIGINT: nothing is left on the volume, and it can be resumed.
func TestStorageInterrupt(t *testing.T) {
	experiments(t)
	dir := volumeDir(t)
	p := start(t, "run", "--target", "local:"+dir+"?size=32MiB", "--target",
		"local:"+dir+"?size=32MiB&label=again", "--case", "storage/randread-4k-qd1",
		"--duration", "300ms", "--blocks", "6", "--out", "out", "--progress", "none")
	p.awaitRuns(t, 3)
	p.interrupt(t)
	if files, processes := entries(t, dir), p.processes(t); len(files)+len(processes) > 0 {
		t.Errorf("left are %v, %v", files, processes)
	}
	status, text := execute(t, "run", "--resume", filepath.Join(p.Dir, "out"), "--progress", "none")
	if status != statusDone || !strings.Contains(text, "Random read, 4 KiB") {
		t.Errorf("resumed: status %d\n%s", status, text)
	}
	if left := entries(t, dir); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// smallVolume mounts a new file system of mib MiB, and returns its directory.
func smallVolume(t *testing.T, mib int) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting takes root")
	}
	dir := t.TempDir()
	script := fmt.Sprintf("truncate -s %dM image; mkfs.ext4 -q -m 0 image; mkdir volume; mount -o loop image volume", mib)
	mount := exec.Command("sh", "-ec", script)
	mount.Dir = dir
	if out, err := mount.CombinedOutput(); err != nil {
		t.Skipf("this machine mounts no image: %v\n%s", err, out)
	}
	volume := filepath.Join(dir, "volume")
	t.Cleanup(func() {
		if out, err := exec.Command("umount", volume).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return volume
}

// TestStorageLeavesSpace checks that targets on one file system do not fill it: a tenth stays free, whatever they are
// asked to write.
func TestStorageLeavesSpace(t *testing.T) {
	experiments(t)
	volumeDir(t) // fio is there
	const mib = 256
	dir := smallVolume(t, mib)
	least := func(args ...string) (free uint64, status int, text string) {
		var fs unix.Statfs_t
		measured := make(chan struct{})
		watched := make(chan struct{})
		free = math.MaxUint64
		go func() {
			defer close(watched)
			for {
				if err := unix.Statfs(dir, &fs); err == nil {
					free = min(free, fs.Bavail*uint64(fs.Bsize)>>20)
				}
				select {
				case <-measured:
					return
				case <-time.After(5 * time.Millisecond):
				}
			}
		}()
		all := []string{"run", "--duration", "200ms", "--warmup", "50ms", "--blocks", "2", "--progress", "none", "--out",
			filepath.Join(t.TempDir(), "out")}
		status, text = execute(t, append(all, args...)...)
		close(measured)
		<-watched
		return free, status, text
	}
	for name, size := range map[string]string{"half": "", "fresh": "&volume=fresh", "given": "&size=100MiB"} {
		target := func(label string) string { return "local:" + dir + "?label=" + label + size }
		free, status, text := least(target("a"), target("b"), "--case", "storage/write-1m-qd4")
		// A volume in memory may be faster than fio, whose runs are then not valid.
		if status != statusDone && status != statusRunFailed || free < mib/10 || free > mib/2 {
			t.Errorf("%s: status %d, %d of %d MiB stayed free\n%s", name, status, free, mib, text)
		}
	}
	free, status, text := least("local:"+dir+"?size=120MiB", "local:"+dir+"?size=120MiB&label=b", "--case",
		"storage/write-1m-qd4")
	if status == statusDone || free < mib/2 || !strings.Contains(text, "by each of 2 targets: free some") {
		t.Errorf("status %d, %d of %d MiB stayed free\n%s", status, free, mib, text)
	}
}
