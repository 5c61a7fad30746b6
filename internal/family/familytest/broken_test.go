package familytest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/targettest"
)

// brokenEnv is the environment variable with the defect to test, in the processes that the test starts.
const brokenEnv = "TOOLTEST_BROKEN"

// A broken tool is a model with one defect.
type broken struct {
	*Model
	run      func(context.Context, host.Pair, family.Workload, family.Times) (result.Measurement, error)
	supports func(family.Workload) error
}

func (b *broken) Run(ctx context.Context, p host.Pair, w family.Workload, t family.Times) (result.Measurement, error) {
	if b.run != nil {
		return b.run(ctx, p, w, t)
	}
	return b.Model.Run(ctx, p, w, t)
}

func (b *broken) Supports(w family.Workload) error {
	if b.supports != nil {
		return b.supports(w)
	}
	return b.Model.Supports(w)
}

// A defect is a way to break the contract, with the message that the suite must report.
type defect struct {
	spoil func(*broken)
	says  string
}

// defects returns the defects by name.
func defects() map[string]defect {
	return map[string]defect{
		"no gate": {func(b *broken) {
			b.run = func(ctx context.Context, p host.Pair, w family.Workload, t family.Times) (result.Measurement, error) {
				p.Dial = p.Listen
				return b.Model.Run(ctx, p, w, t)
			}
		}, "without a server or volume gave a valid measurement"},
		"ignores cancel": {func(b *broken) { b.Wait = func(context.Context, time.Duration) error { return nil } },
			"is not context.Canceled"},
		"leaves a process": {func(b *broken) {
			b.run = func(ctx context.Context, p host.Pair, w family.Workload, t family.Times) (result.Measurement, error) {
				started := make(chan struct{})
				go func() {
					close(started)
					_ = p.Server.Run(context.WithoutCancel(ctx), host.Cmd{Args: []string{"sleep", "600"}})
				}()
				<-started
				time.Sleep(20 * time.Millisecond) // until it runs
				return b.Model.Run(ctx, p, w, t)
			}
		}, "still running"},
		"not pure": {func(b *broken) {
			n := 0
			b.supports = func(family.Workload) error {
				if n++; n%2 == 0 {
					return result.NotSupported("not today")
				}
				return nil
			}
		}, "is not pure"},
		"supports all": {func(b *broken) { b.supports = func(family.Workload) error { return nil } }, "no-such-workload"},
		"no reason": {func(b *broken) {
			b.supports = func(w family.Workload) error {
				if w.Traits().Kind == string(netload.TCPRR) {
					return nil
				}
				return errors.New("no")
			}
		}, "is not ErrNotSupported"},
		"name": {func(b *broken) { b.Called = "My Tool" }, "is not letters"},
		"wrong unit": {func(b *broken) {
			b.run = func(ctx context.Context, p host.Pair, w family.Workload, t family.Times) (result.Measurement, error) {
				m, err := b.Model.Run(ctx, p, w, t)
				for i := range m.Values {
					m.Values[i].Unit = "Gbit/s"
				}
				return m, err
			}
		}, "not a base unit"},
		"unlisted": {func(b *broken) {
			b.run = func(ctx context.Context, p host.Pair, w family.Workload, t family.Times) (result.Measurement, error) {
				m, err := b.Model.Run(ctx, p, w, t)
				m.Values = append(m.Values, result.Value{Metric: "p75", Unit: "s"})
				return m, err
			}
		}, "p75 in s, better \"\", is not among the tool's metrics"},
	}
}

// TestSuiteFindsDefects checks that the suite finds each defect of a broken model.
func TestSuiteFindsDefects(t *testing.T) {
	if name := os.Getenv(brokenEnv); name != "" {
		runBroken(t, name)
		return
	}
	for name, d := range defects() {
		t.Run(name, func(t *testing.T) {
			again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSuiteFindsDefects$", "-test.count=1")
			again.Env = append(os.Environ(), brokenEnv+"="+name)
			out, err := again.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !strings.Contains(string(out), d.says) {
				t.Errorf("%v, wanted it to say %q:\n%s", err, d.says, out)
			}
		})
	}
}

func runBroken(t *testing.T, name string) {
	b := &broken{Model: &Model{}}
	defects()[name].spoil(b)
	var twin *targettest.Twin
	Suite(t, Config{
		Tool: b,
		Pair: func(t *testing.T) (p host.Pair) { p, twin = twinPair(t, "a"); return p },
		Workloads: []family.Workload{
			Network(t, netload.Spec{Kind: netload.TCPRR}), Network(t, netload.Spec{Kind: netload.TCPStream}),
		},
		Times:   family.Times{Window: time.Second},
		Running: func(*testing.T) []string { return twin.Left() },
	})
}
