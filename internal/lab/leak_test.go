//go:build linux

package lab_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// nobody is the unprivileged user of most systems.
const nobody = 65534

// TestWithoutRoot runs the tests of every path again as an unprivileged user, so that the labs are in user namespaces.
func TestWithoutRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("all tests run without root already")
	}
	cmd := exec.Command("/proc/self/exe", "-test.run", "^TestEveryPathOfEveryDatapathTalks$", "-test.v")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	switch text := string(out); {
	case strings.Contains(text, "does not let this user make namespaces"):
		t.Skip("users without rights cannot make user namespaces here")
	case err != nil:
		t.Errorf("%v:\n%s", err, text)
	case !strings.Contains(text, "--- PASS: TestEveryPathOfEveryDatapathTalks/vxlan"):
		t.Errorf("the tests did not run:\n%s", text)
	}
}

// leaked returns an error if the tests of this package have left a process. Processes hold everything else that tests
// could leave.
func leaked() error {
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	if errors.Is(err, syscall.ECHILD) {
		return nil
	}
	if pid == 0 {
		return errors.New("a process that the tests started still runs")
	}
	return errors.New("a process that the tests started was not waited for")
}
