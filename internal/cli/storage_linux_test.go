package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// volumeDir is a directory on the disk that the test is on, which takes direct I/O.
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

func entries(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestStorageKilled kills the program while fio runs: fio ends with it, and clean finds the file.
func TestStorageKilled(t *testing.T) {
	for i, moment := range []time.Duration{300 * time.Millisecond, 1500 * time.Millisecond, 4 * time.Second} {
		dir := volumeDir(t)
		mark := fmt.Sprintf("storage-%d-%d", os.Getpid(), i)
		cmd, output := start(t, mark, "run", "--target", "local:"+dir+"?size=64MiB", "--case", "storage/randrw50-4k-qd4-jobs2", "--duration", "2m", "--out", "out", "--progress", "none")
		for deadline := time.Now().Add(20 * time.Second); len(entries(t, dir)) == 0 && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(moment)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatalf("after %v: %v\n%s", moment, err, output)
		}
		_ = cmd.Wait() // it was killed
		deadline := time.Now().Add(5 * time.Second)
		for len(marked(t, mark)) > 0 && time.Now().Before(deadline) {
			time.Sleep(20 * time.Millisecond)
		}
		if left := marked(t, mark); len(left) > 0 {
			t.Errorf("killed after %v, and five seconds later there is still %v", moment, left)
		}
		left := entries(t, dir)
		if len(left) != 1 || !strings.HasPrefix(filepath.Base(left[0]), "knotmeter-") {
			t.Fatalf("left are %v\n%s", left, output)
		}
		status, out := execute(t, "clean", "--target", "local:"+dir)
		if status != statusDone || !strings.Contains(out, "removed "+left[0]) || len(entries(t, dir)) > 0 {
			t.Errorf("clean: status %d, %s; left are %v", status, out, entries(t, dir))
		}
	}
}

// TestStorageInterrupt ends an experiment of storage by SIGINT: nothing is left on the volume, and it goes on.
func TestStorageInterrupt(t *testing.T) {
	dir := volumeDir(t)
	mark := fmt.Sprintf("storage-interrupt-%d", os.Getpid())
	cmd, output := start(t, mark, "run", "--target", "local:"+dir+"?size=32MiB", "--target", "local:"+dir+"?size=32MiB&label=again", "--case", "storage/randread-4k-qd1",
		"--duration", "300ms", "--blocks", "6", "--out", "out", "--progress", "none")
	out := filepath.Join(cmd.Dir, "out")
	awaitRuns(t, out, 3)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != statusInterrupted {
		t.Fatalf("ended with %v, want status %d\n%s", err, statusInterrupted, output)
	}
	if files, processes := entries(t, dir), marked(t, mark); len(files)+len(processes) > 0 {
		t.Errorf("left are %v, %v", files, processes)
	}
	if status, text := execute(t, "run", "--resume", out, "--progress", "none"); status != statusDone || !strings.Contains(text, "storage/randread-4k-qd1, p50") {
		t.Errorf("resumed: status %d\n%s", status, text)
	}
	if left := entries(t, dir); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}
