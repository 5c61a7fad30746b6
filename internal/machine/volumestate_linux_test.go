package machine

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

// TestInspectVolume checks that the size and the free space of a volume are reported, or why it cannot be written.
func TestInspectVolume(t *testing.T) {
	dir := t.TempDir()
	v := InspectVolume(dir)
	if v.Error != "" || v.Device || v.Size <= 0 || v.Free <= 0 ||
		v.Free > v.Size || result.FactOf(v.Facts, "filesystem") == "" {
		t.Errorf("%+v", v)
	}
	for path, mounted := range map[string]bool{"/": false, "/proc": true} {
		if v := InspectVolume(path); v.Mounted != mounted {
			t.Errorf("%s: mounted %t", path, v.Mounted)
		}
	}
	if v := InspectVolume(filepath.Join(dir, "none")); !strings.Contains(v.Error, "is not there") {
		t.Errorf("%+v", v)
	}
	if os.Geteuid() == 0 {
		ro := t.TempDir()
		if exec.Command("mount", "-t", "tmpfs", "-o", "ro", "tmpfs", ro).Run() == nil {
			t.Cleanup(func() { _ = exec.Command("umount", ro).Run() })
			if v := InspectVolume(ro); !strings.Contains(v.Error, "mounted read-only") {
				t.Errorf("%+v", v)
			}
		}
	} else {
		if v := InspectVolume("/"); !strings.Contains(v.Error, "may not be written") {
			t.Errorf("%+v", v)
		}
	}
}
