package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
