package cgroup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

func TestQuota(t *testing.T) {
	for version, want := range map[int]string{
		1: "[{cpu.cfs_period_us 100000} {cpu.cfs_quota_us 95000}]", 2: "[{cpu.max 95000 100000}]",
	} {
		if got := fmt.Sprint(quota(version, 950)); got != want {
			t.Errorf("version %d: %s", version, got)
		}
	}
}

func TestFindCPUMount(t *testing.T) {
	const mixed = hybrid + "34 31 0:31 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,nothing\n"
	if m, ok := findCPUMount(mixed); !ok || m.Point != "/sys/fs/cgroup/cpu" {
		t.Errorf("%+v, %v", m, ok)
	}
	if m, ok := findCPUMount(hybrid); ok { // cpuacct is another controller
		t.Errorf("%+v", m)
	}
}

// enterEnv makes the test binary enter a group and become another program.
const enterEnv = "KNOTMETER_TEST_ENTER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(enterEnv); dir != "" {
		fmt.Fprintln(os.Stderr, Enter(dir, []string{"/bin/cat", "/proc/self/cgroup"}))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestLimited checks that a group has its quota, that a program starts in it, and that Clean removes the group of a
// maker that was killed.
func TestLimited(t *testing.T) {
	g, err := NewLimited(950)
	if errors.Is(err, result.ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	limit := ""
	for _, name := range []string{"cpu.cfs_quota_us", "cpu.max"} {
		text, _ := os.ReadFile(g.Dir() + "/" + name)
		limit += string(text)
	}
	if !strings.HasPrefix(limit, "95000") {
		t.Errorf("the limit is %q", limit)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), enterEnv+"="+g.Dir())
	text, err := cmd.CombinedOutput()
	if base := g.Dir()[strings.LastIndex(g.Dir(), "/"):]; err != nil || !strings.Contains(string(text), base+"\n") {
		t.Errorf("the program was in %s, %v, and not in %s", strconv.Quote(string(text)), err, g.Dir())
	}
	g.file.Close() // as the kernel does for a killed process
	own := func(dir string) bool { return dir == g.Dir() }
	if removed, err := Clean(own, func(string) {}); err != nil || len(removed) != 1 || removed[0] != g.Dir() {
		t.Errorf("removed %v, %v", removed, err)
	}
	checkGone(t, g)
}
