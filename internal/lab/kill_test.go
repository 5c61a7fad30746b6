//go:build linux

package lab_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
	"github.com/knotmeter/knotmeter/internal/lab/labtest"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// kills is how often the stress test kills a program with a lab.
var kills = flag.Int("kills", 30, "how often the stress test kills a program with a lab at a random moment")

const (
	// envMark is in the environment of a killed program and of everything that it started.
	envMark = "KNOTMETER_TEST_KILL="
	// leftoverTimeout is how long leftovers may take to disappear. It is generous, since speed is not tested.
	leftoverTimeout = time.Minute
)

// openSites is the program that the tests kill. It opens sites of all datapaths, runs commands in them that never end,
// and closes the sites.
func openSites() error {
	ctx := context.Background()
	c := config()
	c.UserNamespace = os.Getenv("LOOP_USER") != ""
	l, err := lab.Start(c)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		for _, d := range datapath.Kit.Datapaths {
			topology := lab.Default()
			topology.Services = datapath.Kit.Services[rand.N(len(datapath.Kit.Services))].Name
			var placements []targets.Placement
			for j := range 3 {
				p := targets.Placement{Path: result.Paths()[(i+j)%len(result.Paths())], Rotation: i}
				if d.Carries(topology, p.Path) == nil && l.Probe(d.Name(), topology, p.Path) == nil {
					placements = append(placements, p)
				}
			}
			if len(placements) == 0 {
				continue
			}
			site, err := l.Open(ctx, d.Name(), topology, placements)
			if err != nil {
				return err
			}
			for _, p := range site.Places {
				if err := p.Err(); err != nil {
					return err
				}
				endless := host.Cmd{Args: []string{"sh", "-c", "setsid sleep 1000 & sleep 1000"}}
				go func() { _ = l.Run(ctx, site.ID, p.Client.Name, endless) }()
			}
			time.Sleep(5 * time.Millisecond)
			if err := l.CloseSite(site.ID); err != nil {
				return err
			}
		}
	}
}

// TestKillLeavesNothing checks that a program leaves nothing if it is killed while it starts its lab, opens its first
// site, or works on a later one.
func TestKillLeavesNothing(t *testing.T) {
	for i, moment := range []time.Duration{0, 20, 50, 100, 150, 200, 300, 400} {
		for _, user := range []bool{false, true} {
			t.Run(fmt.Sprintf("%dms/user=%t", moment, user), func(t *testing.T) {
				killAt(t, fmt.Sprintf("%d-%d-%t", os.Getpid(), i, user), moment*time.Millisecond, user)
			})
		}
	}
}

func TestStressKills(t *testing.T) {
	for i := range *kills {
		moment := rand.N(400 * time.Millisecond)
		t.Run(fmt.Sprintf("%d", i), func(t *testing.T) { killAt(t, fmt.Sprintf("%d-%d", os.Getpid(), i), moment, i%2 == 1) })
	}
}

func killAt(t *testing.T, id string, moment time.Duration, user bool) {
	interfaces, group := machineInterfaces(t), labtest.NewGroup(t)
	dir := t.TempDir()
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stderr.Close() }()
	cmd := exec.Command("/proc/self/exe", loopArg)
	cmd.Dir, cmd.Stderr = dir, stderr
	cmd.Env = append(os.Environ(), envMark+id, "TMPDIR="+dir, "HOME="+dir, "XDG_RUNTIME_DIR="+dir)
	if user {
		cmd.Env = append(cmd.Env, "LOOP_USER=1")
	}
	group.Place(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(moment)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	if _, err := cmd.Process.Wait(); err != nil {
		t.Fatal(err)
	}
	var left []labtest.Process
	left = labtest.Marked(t, envMark+id)
	for ; len(left) > 0 && time.Since(killed) < leftoverTimeout; left = labtest.Marked(t, envMark+id) {
		time.Sleep(5 * time.Millisecond)
	}
	if len(left) > 0 {
		t.Errorf("killed after %s, and %s later there still are %v", moment, leftoverTimeout, left)
	}
	if now := machineInterfaces(t); !slices.Equal(interfaces, now) {
		t.Errorf("the machine's own interfaces were %v and are %v", interfaces, now)
	}
	if groups := group.Left(t); len(groups) > 0 {
		t.Errorf("control groups are left: %v", groups)
	}
	if files, err := filepath.Glob(dir + "/*"); err != nil || len(files) > 0 {
		t.Errorf("files are left: %v %v", files, err)
	}
	// A program that ended before it was killed would have written its error.
	if said, err := os.ReadFile(stderr.Name()); err != nil || len(said) > 0 {
		t.Errorf("it said: %s %v", said, err)
	}
}

func machineInterfaces(t *testing.T) []string {
	t.Helper()
	names, err := labtest.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	return names
}
