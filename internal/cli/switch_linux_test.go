package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/lab/labtest"
	"github.com/knotmeter/knotmeter/internal/store"
)

// TestAccuracyConfigurationsInTurn checks that a switch that makes a server answer 5 % later gives a difference, and
// one that changes nothing does not.
func TestAccuracyConfigurationsInTurn(t *testing.T) {
	dir := t.TempDir()
	place := filepath.Join(dir, "place")
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived := time.Now()
		text, err := os.ReadFile(place)
		takes, wrong := time.ParseDuration(strings.TrimSpace(string(text)))
		if err != nil || wrong != nil {
			t.Errorf("%v, %v", err, wrong)
		}
		time.Sleep(takes - time.Since(arrived))
	}))
	defer server.Close()
	file := `{apiVersion: knotmeter/v1, kind: Experiment, suite: app:shop.yaml, blocks: 10, duration: 500ms,
warmup: 100ms, restore: echo 1ms > place, targets: [
  {target: "local:?label=a", switch: echo 20ms > place},
  {target: "local:?label=slow", switch: echo 21ms > place},
  {target: "local:?label=same", switch: echo 20ms > place}]}`
	shop := fmt.Sprintf("url: %s\nloads: [clients=1]\nrequests:\n- {name: read, path: /}\n", server.URL)
	for name, text := range map[string]string{"experiment.yaml": file, "shop.yaml": shop} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	status, out := execute(t, "run", "-f", "experiment.yaml", "--out", "out", "--progress", "none", "-o", "markdown")
	if text, err := os.ReadFile(place); status != statusDone || err != nil || string(text) != "1ms\n" {
		t.Fatalf("status %d, %q is in place, %v\n%s", status, text, err, out)
	}
	_, out = execute(t, "compare", "out", "-o", "json")
	var c compare.Comparison
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rows := c.Primary()
	if len(rows) != 2 {
		t.Fatalf("%d comparisons", len(rows))
	}
	for _, row := range rows {
		found := row.Verdict == compare.Different && row.Direction == compare.WorseThan
		if found != (row.Target == "slow") || row.Verdict == compare.Different && !found {
			t.Errorf("%s: %s", row.Target, row.Sentence)
		}
	}
}

// TestKillInSwitch kills the program while a switch runs. Its children end, a service that it started stays, and the
// resumed experiment knows that the switch was cut off, ends what escaped, switches again and restores.
func TestKillInSwitch(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	const install = `log() { echo "$1" >> log; }
log begin
if [ ! -e resumed ]; then
  setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo $! > service
  sleep 1001 &
  timeout 1002 sh -c 'echo $$ > escaped; sleep 1003' &
  sleep 1004
fi
log end
`
	file := `{apiVersion: knotmeter/v1, kind: Experiment, suite: app:shop.yaml, blocks: 1, duration: 100ms, warmup: 0s,
restore: echo restored >> log,
targets: [{target: "local:?label=a", switch: sh install}, {target: "local:?label=b", switch: sh install}]}`
	shop := fmt.Sprintf("url: %s\nloads: [clients=1]\nrequests:\n- {name: read, path: /}\n", server.URL)
	p := prepare(t, "run", "-f", "experiment.yaml", "--out", "out", "--progress", "none")
	for name, text := range map[string]string{"experiment.yaml": file, "shop.yaml": shop, "install": install} {
		if err := os.WriteFile(filepath.Join(p.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.launch(t)
	for _, argument := range []string{"1000", "1001", "1003", "1004"} {
		p.awaitProcess(t, argument)
	}
	service := p.awaitProcess(t, "1000").PID
	defer syscall.Kill(service, syscall.SIGKILL)
	p.kill(t, "killed in a switch")
	// timeout(1) makes a process group of its own.
	p.awaitOnly(t, "sleep 1000", "timeout 1002", "sh -c echo", "sleep 1003")

	if err := os.WriteFile(filepath.Join(p.Dir, "resumed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(p.Dir)
	_, out := execute(t, "compare", "out")
	if want := "has not ended: unless the experiment still runs, it was cut off"; !strings.Contains(words(out), want) {
		t.Errorf("compare does not say %q:\n%s", want, out)
	}
	status, out := execute(t, "run", "--resume", "out", "--progress", "none")
	if status != statusDone {
		t.Fatalf("status %d\n%s", status, out)
	}
	if want := "has not ended"; !strings.Contains(words(out), want) {
		t.Errorf("the resumed experiment does not say %q:\n%s", want, out)
	}
	p.awaitOnly(t, "sleep 1000")
	log, err := os.ReadFile("log")
	if want := "begin\nbegin\nend\nbegin\nend\nrestored\n"; err != nil || string(log) != want {
		t.Errorf("the commands were\n%s%v, want\n%s", log, err, want)
	}
	r, err := store.Open("out")
	if err != nil {
		t.Fatal(err)
	}
	var ends []bool
	for _, s := range r.Switches {
		ends = append(ends, s.Failed == "")
	}
	if want := []bool{false, true, true, true}; !slices.Equal(ends, want) || r.Switches[0].Session != 1 {
		t.Errorf("switches %+v", r.Switches)
	}
}

// awaitOnly waits until the processes that the program started are those whose arguments begin so.
func (p *process) awaitOnly(t *testing.T, want ...string) {
	t.Helper()
	var left []labtest.Process
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		left = p.processes(t)
		is := func(text string) bool {
			return slices.ContainsFunc(left, func(one labtest.Process) bool { return strings.HasPrefix(one.Args, text) })
		}
		if len(left) == len(want) && !slices.ContainsFunc(want, func(text string) bool { return !is(text) }) {
			return
		}
	}
	t.Fatalf("there is %v, want %q", left, want)
}

func words(text string) string { return strings.Join(strings.Fields(text), " ") }
