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

// nobody is the user without rights of most systems.
const nobody = 65534

// The tests of every path once more, as a user without rights: all of it is in a user namespace then.
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

// leaked says what the tests of this package have left: processes that nobody has waited for, which is what everything
// else here is held by.
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
