//go:build linux

package faults

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/knotmeter/knotmeter/test/e2e"
)

// TestNoSocketOnTheMachine checks that clusters share no sockets with each other or with this machine, which may be a
// node itself: all sockets of a cluster are in its directory or in its own mounts.
func TestNoSocketOnTheMachine(t *testing.T) {
	e2e.NeedParts(t)
	started, err := os.Stat(filepath.Join(filepath.Dir(e2e.Kubeconfig(t)), "pid"))
	if err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{"/run", "/var/lib/kubelet", "/var/lib/cni", "/var/lib/containerd"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.Type()&fs.ModeSocket == 0 {
				return nil // a directory that does not exist has no socket
			}
			if info, err := d.Info(); err == nil && info.ModTime().After(started.ModTime()) {
				t.Errorf("%s appeared on the machine since the cluster started", path)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
