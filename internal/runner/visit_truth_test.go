package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/targets/targettest"
)

// TestVisitsFindTheTruth checks that a target that costs 5 % more is found to be different and one without a difference
// equivalent, although a run and a switch fail and the experiment is interrupted and resumed: runs are paired by block.
func TestVisitsFindTheTruth(t *testing.T) {
	b := newTestbed(t, "abc", 12, "pod-pod/other/tcp-rr")
	for name, cost := range map[string]string{"a": "1", "b": "1.05", "c": "1"} {
		b.target(name).Switch = b.command(fmt.Sprintf("echo %s > place; echo %s > cost; echo %[1]s >> log", name, cost))
	}
	b.target("b").Switch.Text += "; test $(grep -c b log) -ne 3" // the third switch to it fails
	b.model.Noise = 0.005
	b.model.Fail = func(call int, p host.Pair, _ family.Workload) (string, error) {
		cost, err := strconv.ParseFloat(strings.TrimSpace(b.read("cost")), 64)
		b.model.Effects = map[string]float64{targettest.Label(p.Client): cost} // cost of the target in place
		if call == 7 {
			return "the CPU was throttled", err
		}
		if call == 10 {
			return "", errors.Join(errors.New("connection reset"), err)
		}
		return "", err
	}
	interrupted, interrupt := 0, func() {}
	b.config.Events = func(e runner.Event) {
		if e.Kind == runner.RunDone && e.Done == 14 {
			interrupt()
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	interrupt = cancel
	for b.run(ctx).Stopped == runner.StopInterrupted {
		interrupted++
		ctx, interrupt = t.Context(), func() {}
		b.config.Earlier, b.config.EarlierSites = b.sink.runs, b.sink.sites
		b.config.EarlierSwitches, b.config.EarlierFacts = b.sink.switches, b.sink.facts
	}
	if b.wantVisits("abc"); interrupted != 1 {
		t.Errorf("interrupted %d times", interrupted)
	}
	c, err := compare.Compare(result.Results{Experiment: b.config.Experiment, Runs: b.sink.runs,
		Switches: b.sink.switches, Facts: b.sink.facts})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range c.Primary() {
		want, worse := compare.Equivalent, compare.None
		if row.Target == "b" {
			want, worse = compare.Different, compare.WorseThan
		}
		if row.Verdict != want || row.Target == "b" && row.Direction != worse || row.Blocks != 12 {
			t.Errorf("%s: %s, %s, %d blocks: %s", row.Target, row.Verdict, row.Direction, row.Blocks, row.Sentence)
		}
	}
}
