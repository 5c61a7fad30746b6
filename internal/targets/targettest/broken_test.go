package targettest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// defectEnv is the environment variable with the defect that a second process of the test gives to a twin.
const defectEnv = "TARGETTEST_BROKEN"

// A broken target is a twin with one defect.
type broken struct {
	*Twin
	open     func(context.Context, *Twin, []targets.Placement) (targets.Site, error)
	supports func(targets.Placement) error
	facts    func() []result.Fact
	begin    func(context.Context, targets.Plan) ([]string, error)
}

func (b *broken) Begin(ctx context.Context, p targets.Plan) ([]string, error) {
	if b.begin != nil {
		return b.begin(ctx, p)
	}
	return b.Twin.Begin(ctx, p)
}

func (b *broken) Open(ctx context.Context, placements []targets.Placement) (targets.Site, error) {
	if b.open != nil {
		return b.open(ctx, b.Twin, placements)
	}
	return b.Twin.Open(ctx, placements)
}

func (b *broken) Supports(p targets.Placement) error {
	if b.supports != nil {
		return b.supports(p)
	}
	return b.Twin.Supports(p)
}

func (b *broken) Facts(ctx context.Context) ([]result.Fact, error) {
	if b.facts != nil {
		return b.facts(), nil
	}
	return b.Twin.Facts(ctx)
}

// openAndSpoil returns an Open that spoils the site that it opens.
func openAndSpoil(spoil func(*targets.Site)) func(context.Context, *Twin, []targets.Placement) (targets.Site, error) {
	return func(ctx context.Context, t *Twin, placements []targets.Placement) (targets.Site, error) {
		site, err := t.Open(ctx, placements)
		if err == nil {
			spoil(&site)
		}
		return site, err
	}
}

// defects returns violations of the contract, with the message of the suite.
func defects() map[string]struct {
	spoil func(*broken)
	says  string
} {
	type defect = struct {
		spoil func(*broken)
		says  string
	}
	program := func(name string, p Program) func(*broken) {
		return func(b *broken) { b.Programs = map[string]Program{name: p} }
	}
	return map[string]defect{
		"leaks": {func(b *broken) {
			b.open = openAndSpoil(func(s *targets.Site) { s.Close = func(context.Context) error { return nil } })
		}, "left behind after"},
		"same node": {func(b *broken) {
			b.open = func(ctx context.Context, t *Twin, placements []targets.Placement) (targets.Site, error) {
				same := slices.Repeat([]targets.Placement{{Path: result.PodPodSame}}, len(placements))
				return t.Open(ctx, same)
			}
		}, "the hosts are"},
		"no service": {func(b *broken) {
			b.open = openAndSpoil(func(s *targets.Site) { s.Places[0].Dial = s.Places[0].Listen })
		},
			"the client dials"},
		"deaf": {func(b *broken) {
			b.open = func(ctx context.Context, t *Twin, placements []targets.Placement) (targets.Site, error) {
				return t.Open(context.WithoutCancel(ctx), placements)
			}
		}, "with a context that had ended"},
		"rotates at random": {func(b *broken) {
			n := 0
			b.open = func(ctx context.Context, t *Twin, placements []targets.Placement) (targets.Site, error) {
				n++
				turned := slices.Clone(placements)
				turned[0].Rotation += n
				return t.Open(ctx, turned)
			}
		}, "rotation 0 gave nodes"},
		"no reason": {func(b *broken) { b.supports = func(targets.Placement) error { return errors.New("no") } },
			"is not ErrNotSupported"},
		"supports all": {func(b *broken) { b.supports = func(targets.Placement) error { return nil } }, "Supports nowhere"},
		"no facts":     {func(b *broken) { b.facts = func() []result.Fact { return nil } }, "a target has facts"},
		"empty fact": {func(b *broken) { b.facts = func() []result.Fact { return []result.Fact{{Name: "Kernel"}} } },
			"is empty"},
		"no exit code": {program("false", func(context.Context, host.Host, host.Cmd) error { return nil }), "no ExitError"},
		"loses output": {program("echo", func(context.Context, host.Host, host.Cmd) error { return nil }), "echo on"},
		"same places": {program("place", func(_ context.Context, _ host.Host, c host.Cmd) error {
			return writeOutput(c, "7")
		}), "used again"},
		"finds all": {program("no-such-program-anywhere", cat), "is not ErrNoCommand"},
		"deaf beginner": {func(b *broken) {
			b.begin = func(context.Context, targets.Plan) ([]string, error) { return nil, nil }
		}, "Begin with a context that had ended"},
		"in its own way": {func(b *broken) {
			b.begin = func(ctx context.Context, p targets.Plan) ([]string, error) {
				return []string{"the experiment " + p.Experiment + " runs here too"}, ctx.Err()
			}
		}, "about another experiment"},
		"forgets a place": {func(b *broken) {
			b.open = func(ctx context.Context, t *Twin, placements []targets.Placement) (targets.Site, error) {
				return t.Open(ctx, placements[:1])
			}
		}, "places for"},
		"all or nothing": {func(b *broken) {
			b.open = func(ctx context.Context, t *Twin, placements []targets.Placement) (targets.Site, error) {
				for _, p := range placements {
					if err := t.Supports(p); err != nil {
						return targets.Site{}, err
					}
				}
				return t.Open(ctx, placements)
			}
		}, "an Open of several"},
		"slow to close": {func(b *broken) { b.CloseFails = errors.New("busy") }, "busy"},
	}
}

// TestSuiteFindsDefects runs the suite on broken twins, which it must fail.
func TestSuiteFindsDefects(t *testing.T) {
	if name := os.Getenv(defectEnv); name != "" {
		runDefect(t, name)
		return
	}
	for name, defect := range defects() {
		t.Run(name, func(t *testing.T) {
			again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSuiteFindsDefects$", "-test.count=1")
			again.Env = append(os.Environ(), defectEnv+"="+name)
			out, err := again.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !strings.Contains(string(out), defect.says) {
				t.Errorf("%v, wanted it to say %q:\n%s", err, defect.says, out)
			}
		})
	}
}

func runDefect(t *testing.T, name string) {
	var b *broken
	Suite(t, Config{
		New: func(*testing.T) targets.Target {
			b = &broken{Twin: &Twin{Label: "broken", Unsupported: map[result.Path]string{result.NodeNode: "it has no nodes"}}}
			defects()[name].spoil(b)
			return b
		},
		Offers: On(result.PodPodOther, result.PodSvcOther),
		Left: func(*testing.T) []string {
			if b == nil {
				return nil
			}
			return b.Left()
		},
		Place:   placeOf,
		Moments: []time.Duration{0, time.Millisecond},
		Timeout: 2 * time.Second,
	})
}
