package preflight

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/result"
)

// TestVolume checks that the size and the free space of a volume are reported, or why it cannot be written.
func TestVolume(t *testing.T) {
	dir := t.TempDir()
	v := volume(dir)
	if v.Error != "" || v.Device || v.Size <= 0 || v.Free <= 0 ||
		v.Free > v.Size || result.FactOf(v.Facts, "filesystem") == "" {
		t.Errorf("%+v", v)
	}
	for path, mounted := range map[string]bool{"/": false, "/proc": true} {
		if v := volume(path); v.Mounted != mounted {
			t.Errorf("%s: mounted %t", path, v.Mounted)
		}
	}
	if v := volume(filepath.Join(dir, "none")); !strings.Contains(v.Error, "is not there") {
		t.Errorf("%+v", v)
	}
	if os.Geteuid() == 0 {
		ro := t.TempDir()
		if exec.Command("mount", "-t", "tmpfs", "-o", "ro", "tmpfs", ro).Run() == nil {
			t.Cleanup(func() { _ = exec.Command("umount", ro).Run() })
			if v := volume(ro); !strings.Contains(v.Error, "mounted read-only") {
				t.Errorf("%+v", v)
			}
		}
	} else {
		if v := volume("/"); !strings.Contains(v.Error, "may not be written") {
			t.Errorf("%+v", v)
		}
	}
}

// TestVolumeInReport checks that the report has a volume only if the specification names one.
func TestVolumeInReport(t *testing.T) {
	for _, path := range []string{"", t.TempDir()} {
		r := run(t, Spec{Role: Witness, Patience: time.Second, Volume: path})
		if (r.Volume != nil) != (path != "") {
			t.Errorf("%q: %+v", path, r.Volume)
		}
	}
}
