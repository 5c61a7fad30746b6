// Package targettest tests targets: it has the conformance suite that every implementation passes, and an in-memory
// target for tests of everything that uses targets.
package targettest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// A Config describes the target under test. Its hosts must have the commands echo, cat, sleep and false.
type Config struct {
	// New returns a target, which the suite closes.
	New func(t *testing.T) targets.Target
	// Offers lists placements that the target must support, at least one.
	Offers []targets.Placement
	// Left returns the existing objects of the kinds that such targets create: namespaces, interfaces, pods, processes.
	// The suite compares them before and after.
	Left func(t *testing.T) []string
	// Place returns an identifier of a pod's host, which no other pod ever has. If it is nil, the suite does not test
	// that places are fresh.
	Place func(t *testing.T, h host.Host) string
	// Moments are the times after the start of Open at which tests cancel it; nil: several up to 100 ms.
	Moments []time.Duration
	// Timeout limits each operation, so that a hanging one fails; 0: 60 s.
	Timeout time.Duration
}

// On returns a placement for each path.
func On(paths ...result.Path) []targets.Placement {
	var list []targets.Placement
	for _, p := range paths {
		list = append(list, targets.Placement{Path: p})
	}
	return list
}

// Suite runs the conformance suite.
func Suite(t *testing.T, c Config) {
	if len(c.Offers) == 0 {
		t.Fatal("name at least one placement that the target must offer")
	}
	if c.Timeout == 0 {
		c.Timeout = 60 * time.Second
	}
	if c.Moments == nil {
		for _, ms := range []int{0, 1, 3, 10, 30, 100} {
			c.Moments = append(c.Moments, time.Duration(ms)*time.Millisecond)
		}
	}
	tests := []struct {
		name   string
		opened bool // the test needs a target that was opened before
		run    func(*testing.T, Config, targets.Target)
	}{
		{"Begin", false, testBegin},
		{"CancelBegin", false, testCancelBegin},
		{"Facts", false, testFacts},
		{"Supports", false, testSupports},
		{"Open", true, testOpen},
		{"Several", true, testSeveral},
		{"Rotation", true, testRotation},
		{"Fresh", true, testFresh},
		{"Commands", true, testCommands},
		{"Concurrent", true, testConcurrent},
		{"CancelCommand", true, testCancelCommand},
		{"CancelFirstOpen", false, testCancelFirstOpen},
		{"CancelOpen", true, testCancelOpen},
		{"CloseEndsCommands", true, testCloseEndsCommands},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := c.Left(t)
			tg := c.New(t)
			t.Cleanup(func() {
				if err := tg.Close(); err != nil {
					t.Errorf("closing the target: %v", err)
				}
				if after := c.Left(t); !slices.Equal(before, after) {
					t.Errorf("left behind after the target was closed:\n%s\nbefore there was:\n%s",
						strings.Join(after, "\n"), strings.Join(before, "\n"))
				}
			})
			if test.opened {
				warmUp(t, c, tg)
			}
			test.run(t, c, tg)
		})
	}
}

// nameOf returns the name of a placement in messages of the suite.
func nameOf(p targets.Placement) string {
	switch {
	case p.Volume:
		return "a volume"
	case p.AsksAPI:
		return "an API server"
	case p.Machine:
		return "a machine"
	case p.Application != "":
		return "the application " + p.Application
	case p.Path == "":
		return "a client"
	}
	return string(p.Path)
}

// warmUp opens and closes a place for each placement, so that the target has all that it keeps between sites.
func warmUp(t *testing.T, c Config, tg targets.Target) {
	t.Helper()
	for _, p := range c.Offers {
		site, err := targets.OpenOne(withTimeout(t, c), tg, p)
		if err != nil {
			t.Fatalf("open %s: %v", nameOf(p), err)
		}
		if err := site.Close(withTimeout(t, c)); err != nil {
			t.Fatalf("close %s: %v", nameOf(p), err)
		}
	}
}

// withTimeout returns the context of an operation.
func withTimeout(t *testing.T, c Config) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), c.Timeout)
	t.Cleanup(cancel)
	return ctx
}

// use opens a site for p, calls f, closes the site, and checks that nothing is left.
func use(t *testing.T, c Config, tg targets.Target, p targets.Placement, f func(targets.Single)) {
	t.Helper()
	before := c.Left(t)
	site, err := targets.OpenOne(withTimeout(t, c), tg, p)
	if err != nil {
		t.Fatalf("open %s: %v", nameOf(p), err)
	}
	defer func() {
		if err := site.Close(withTimeout(t, c)); err != nil {
			t.Errorf("close %s: %v", nameOf(p), err)
		}
		checkLeft(t, c, before, "a site was closed")
	}()
	f(site)
}

// checkLeft fails the test if other objects exist than before.
func checkLeft(t *testing.T, c Config, before []string, when string) {
	t.Helper()
	if after := c.Left(t); !slices.Equal(before, after) {
		t.Errorf("left behind after %s:\n%s\nbefore there was:\n%s",
			when, strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
}

// testBegin tests that an experiment can claim several targets. Suite checks that their claims end with the targets.
func testBegin(t *testing.T, c Config, tg targets.Target) {
	plan := targets.Plan{Experiment: "conformance", Version: "test", Share: true, Placements: c.Offers}
	second := c.New(t)
	defer func() {
		if err := second.Close(); err != nil {
			t.Errorf("closing the second target: %v", err)
		}
	}()
	for _, one := range []targets.Target{tg, second} {
		warnings, err := one.Begin(withTimeout(t, c), plan)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range warnings {
			if w == "" || strings.HasSuffix(w, ".") || strings.Contains(w, plan.Experiment) {
				t.Errorf("the warning %q is not a sentence without full stop about another experiment", w)
			}
		}
	}
	warmUp(t, c, tg)
}

func testCancelBegin(t *testing.T, c Config, tg targets.Target) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tg.Begin(ctx, targets.Plan{Experiment: "conformance"}); !errors.Is(err, context.Canceled) {
		t.Errorf("Begin with a context that had ended: %v is not context.Canceled", err)
	}
}

func testFacts(t *testing.T, c Config, tg targets.Target) {
	facts, err := tg.Facts(withTimeout(t, c))
	if err != nil {
		t.Fatal(err)
	}
	if len(facts) == 0 {
		t.Error("a target has facts; what cannot be found out is unknown")
	}
	checkFacts(t, facts)
}

// checkFacts tests that facts have valid, distinct names and values.
func checkFacts(t *testing.T, facts []result.Fact) {
	t.Helper()
	seen := map[string]bool{}
	for _, f := range facts {
		if f.Name == "" || f.Name != strings.ToLower(f.Name) || strings.ContainsAny(f.Name, " \t\n") {
			t.Errorf("fact %q is not lower-case words joined by dots and dashes", f.Name)
		}
		if f.Value == "" {
			t.Errorf("fact %s is empty; what cannot be found out is %q", f.Name, result.Unknown)
		}
		if seen[f.Name] {
			t.Errorf("fact %s is there twice", f.Name)
		}
		seen[f.Name] = true
	}
}

func testSupports(t *testing.T, c Config, tg targets.Target) {
	for _, p := range append(On(result.Paths()...), targets.Placement{}, targets.Placement{Volume: true},
		targets.Placement{AsksAPI: true}) {
		err := tg.Supports(p)
		if err == nil {
			continue
		}
		if slices.ContainsFunc(c.Offers, p.Equal) {
			t.Errorf("%s must be offered: %v", nameOf(p), err)
		}
		CheckNotSupported(t, "Supports "+nameOf(p), err)
		before := c.Left(t)
		site, err := targets.OpenOne(withTimeout(t, c), tg, p)
		if err == nil {
			t.Errorf("%s is not supported, but opens", nameOf(p))
			_ = site.Close(withTimeout(t, c))
			continue
		}
		CheckNotSupported(t, "Open "+nameOf(p), err)
		checkLeft(t, c, before, "an Open that is not supported")
	}
	for what, p := range map[string]targets.Placement{
		"nowhere": unknownPath, "an unknown application": {Application: "no-such-application"},
		"a path with a volume":        {Path: result.PodPodOther, Volume: true},
		"a volume with an API server": {Volume: true, AsksAPI: true},
	} {
		CheckNotSupported(t, "Supports "+what, tg.Supports(p))
	}
}

// unknownPath is a placement that no target offers.
var unknownPath = targets.Placement{Path: "nowhere"}

// CheckNotSupported fails the test unless err is a well-formed result.ErrNotSupported.
func CheckNotSupported(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, result.ErrNotSupported) {
		t.Errorf("%s: %v is not ErrNotSupported", what, err)
		return
	}
	if text := err.Error(); text == "" || strings.HasSuffix(text, ".") {
		t.Errorf("%s: the reason %q is not a sentence without full stop", what, text)
	}
}

func testOpen(t *testing.T, c Config, tg targets.Target) {
	for _, p := range c.Offers {
		use(t, c, tg, p, func(s targets.Single) { checkSite(t, p, s) })
	}
}

// testSeveral tests that a site has a place for each placement, in order, and that an unsupported one does not affect
// the others.
func testSeveral(t *testing.T, c Config, tg targets.Target) {
	placements := append([]targets.Placement{unknownPath}, c.Offers...)
	before := c.Left(t)
	site, err := tg.Open(withTimeout(t, c), placements)
	if err != nil {
		t.Fatalf("an Open of several: %v", err)
	}
	defer func() {
		if err := site.Close(withTimeout(t, c)); err != nil {
			t.Errorf("close a site of several: %v", err)
		}
		checkLeft(t, c, before, "a site of several was closed")
	}()
	if len(site.Places) != len(placements) {
		t.Fatalf("%d places for %d placements", len(site.Places), len(placements))
	}
	CheckNotSupported(t, "a place nowhere", site.Places[0].Err)
	for i, place := range site.Places[1:] {
		p := c.Offers[i]
		if place.Err != nil {
			t.Errorf("%s: %v", nameOf(p), place.Err)
			continue
		}
		single := targets.Single{Place: place}
		checkSite(t, p, single)
		for _, h := range hosts(single) {
			checkCommands(t, c, h)
		}
	}
}

// checkSite checks a place and its facts.
func checkSite(t *testing.T, p targets.Placement, s targets.Single) {
	t.Helper()
	if p.Path == "" {
		checkClient(t, p, s)
	} else {
		checkEnds(t, p.Path, s)
	}
	checkFacts(t, s.Facts)
}

// checkEnds checks a place with a host at each end of a path.
func checkEnds(t *testing.T, path result.Path, s targets.Single) {
	t.Helper()
	if s.Client == nil || s.Server == nil {
		t.Fatalf("%s: a site has two hosts", path)
	}
	for _, h := range hosts(s) {
		if h.Name() == "" || !h.Addr().IsValid() {
			t.Errorf("%s: host %q has address %v", path, h.Name(), h.Addr())
		}
	}
	if s.Client.Name() == s.Server.Name() {
		t.Errorf("%s: both hosts are named %q", path, s.Client.Name())
	}
	if same := node(s.Client) == node(s.Server); same == path.Other() {
		t.Errorf("%s: the hosts are %s and %s", path, s.Client.Name(), s.Server.Name())
	}
	if !s.Dial.IsValid() || s.Dial.Port() == 0 || !s.Listen.IsValid() || s.Listen.Port() == 0 {
		t.Errorf("%s: dial %v, listen %v", path, s.Dial, s.Listen)
	}
	if viaService := s.Dial.Addr() != s.Listen.Addr(); viaService != path.Service() {
		t.Errorf("%s: the client dials %v and the server listens at %v", path, s.Dial, s.Listen)
	}
}

// checkClient checks a place without a server, and its volume or its endpoint of the API server.
func checkClient(t *testing.T, p targets.Placement, s targets.Single) {
	t.Helper()
	if s.Client == nil || s.Server != nil || s.Client.Name() == "" {
		t.Fatalf("%s: a site has a client and no server: %v, %v", nameOf(p), s.Client, s.Server)
	}
	if p.Volume && (!strings.HasPrefix(s.Volume.Path, "/") || s.Volume.Size < 0) {
		t.Errorf("the volume is %+v", s.Volume)
	}
	if e := s.Endpoint; p.AsksAPI && (!strings.HasPrefix(e.URL, "http") || e.Namespace == "") {
		t.Errorf("the endpoint of the API server is %+v", e)
	}
}

// hosts returns the hosts of a site, the client first.
func hosts(s targets.Single) []host.Host {
	if s.Server == nil {
		return []host.Host{s.Client}
	}
	return []host.Host{s.Client, s.Server}
}

// node returns the node in the name of a host.
func node(h host.Host) string {
	name, _, _ := strings.Cut(h.Name(), "/")
	return name
}

func testRotation(t *testing.T, c Config, tg targets.Target) {
	nodes := func(rotation int) (names [2]string) {
		p := c.Offers[0]
		p.Rotation = rotation
		use(t, c, tg, p, func(s targets.Single) {
			names = [2]string{node(hosts(s)[0]), node(hosts(s)[len(hosts(s))-1])}
		})
		return names
	}
	for _, rotation := range []int{0, 1, 7} {
		if a, b := nodes(rotation), nodes(rotation); a != b {
			t.Errorf("rotation %d gave nodes %v, then %v", rotation, a, b)
		}
	}
}

func testFresh(t *testing.T, c Config, tg targets.Target) {
	if c.Place == nil {
		t.Skip("this kind of target has nothing that identifies a place")
	}
	for _, p := range c.Offers {
		var seen []string
		for range 2 {
			use(t, c, tg, p, func(s targets.Single) {
				if p.Path.ClientPod() {
					seen = append(seen, "client "+c.Place(t, s.Client))
				}
				if p.Path.ServerPod() {
					seen = append(seen, "server "+c.Place(t, s.Server))
				}
			})
		}
		slices.Sort(seen)
		if len(slices.Compact(slices.Clone(seen))) != len(seen) {
			t.Errorf("%s: places were used again: %v", nameOf(p), seen)
		}
	}
}

func testCommands(t *testing.T, c Config, tg targets.Target) {
	use(t, c, tg, c.Offers[0], func(s targets.Single) {
		for _, h := range hosts(s) {
			checkCommands(t, c, h)
		}
	})
}

// checkCommands tests output, input, and errors of commands on a host.
func checkCommands(t *testing.T, c Config, h host.Host) {
	t.Helper()
	var out bytes.Buffer
	if err := h.Run(withTimeout(t, c), host.Cmd{Args: []string{"echo", "a b", "c"}, Stdout: &out}); err != nil ||
		out.String() != "a b c\n" {
		t.Errorf("echo on %s: %q, %v", h.Name(), out.String(), err)
	}
	out.Reset()
	long := strings.Repeat("0123456789abcdef\n", 1<<14)
	if err := h.Run(withTimeout(t, c), host.Cmd{Args: []string{"cat"}, Stdin: strings.NewReader(long),
		Stdout: &out}); err != nil || out.String() != long {
		t.Errorf("cat on %s: %d of %d bytes, %v", h.Name(), out.Len(), len(long), err)
	}
	if err := h.Run(withTimeout(t, c), host.Cmd{Args: []string{"echo", "unread output"}}); err != nil {
		t.Errorf("echo without Stdout on %s: %v", h.Name(), err)
	}
	var exit *host.ExitError
	if err := h.Run(withTimeout(t, c), host.Cmd{Args: []string{"false"}}); !errors.As(err, &exit) || exit.Status != 1 {
		t.Errorf("false on %s: %v is no ExitError with status 1", h.Name(), err)
	}
	err := h.Run(withTimeout(t, c), host.Cmd{Args: []string{"no-such-program-anywhere"}})
	if !errors.Is(err, host.ErrNoCommand) {
		t.Errorf("a missing program on %s: %v is not ErrNoCommand", h.Name(), err)
	}
}

func testConcurrent(t *testing.T, c Config, tg targets.Target) {
	use(t, c, tg, c.Offers[0], func(s targets.Single) {
		ctx := withTimeout(t, c)
		var wg sync.WaitGroup
		for _, h := range append(hosts(s), hosts(s)...) {
			wg.Go(func() {
				var out bytes.Buffer
				if err := h.Run(ctx, host.Cmd{Args: []string{"echo", h.Name()}, Stdout: &out}); err != nil ||
					out.String() != h.Name()+"\n" {
					t.Errorf("echo on %s: %q, %v", h.Name(), out.String(), err)
				}
			})
		}
		wg.Wait()
	})
}

func testCancelCommand(t *testing.T, c Config, tg targets.Target) {
	use(t, c, tg, c.Offers[0], func(s targets.Single) {
		before := c.Left(t)
		for _, h := range hosts(s) {
			ctx, cancel := context.WithCancel(withTimeout(t, c))
			timer := time.AfterFunc(50*time.Millisecond, cancel)
			if err := h.Run(ctx, host.Cmd{Args: []string{"sleep", "600"}}); !errors.Is(err, context.Canceled) {
				t.Errorf("a cancelled command on %s: %v is not context.Canceled", h.Name(), err)
			}
			timer.Stop()
			cancel()
			if err := h.Run(ctx, host.Cmd{Args: []string{"echo"}}); !errors.Is(err, context.Canceled) {
				t.Errorf("a command begun after the cancel on %s: %v is not context.Canceled", h.Name(), err)
			}
		}
		if after := c.Left(t); !slices.Equal(before, after) {
			t.Errorf("a cancelled command left something behind: %v, before %v", after, before)
		}
	})
}

// testCancelFirstOpen tests cancelling the first Open. Suite checks afterwards that nothing is left.
func testCancelFirstOpen(t *testing.T, c Config, tg targets.Target) {
	cancelOpen(t, c, tg, func() {})
}

func testCancelOpen(t *testing.T, c Config, tg targets.Target) {
	before := c.Left(t)
	cancelOpen(t, c, tg, func() { checkLeft(t, c, before, "a cancelled Open") })
}

// cancelOpen cancels Open at all moments of the config, calls check after each, and tests that Open still works.
func cancelOpen(t *testing.T, c Config, tg targets.Target, check func()) {
	for _, moment := range c.Moments {
		ctx, cancel := context.WithCancel(withTimeout(t, c))
		timer := time.AfterFunc(moment, cancel)
		if moment == 0 {
			cancel()
		}
		site, err := targets.OpenOne(ctx, tg, c.Offers[0])
		timer.Stop()
		cancel()
		switch {
		case err == nil && moment == 0:
			t.Error("Open went ahead with a context that had ended")
			fallthrough
		case err == nil:
			if err := site.Close(withTimeout(t, c)); err != nil {
				t.Errorf("close: %v", err)
			}
		case !errors.Is(err, context.Canceled):
			t.Errorf("Open cancelled after %v: %v is not context.Canceled", moment, err)
		}
		check()
	}
	warmUp(t, c, tg)
	use(t, c, tg, c.Offers[0], func(s targets.Single) { checkSite(t, c.Offers[0], s) })
}

// testCloseEndsCommands tests that a running command does not keep places from being removed.
func testCloseEndsCommands(t *testing.T, c Config, tg targets.Target) {
	ended := make(chan error, 1)
	use(t, c, tg, c.Offers[0], func(s targets.Single) {
		started := make(chan struct{})
		go func() {
			close(started)
			ended <- hosts(s)[len(hosts(s))-1].Run(t.Context(), host.Cmd{Args: []string{"sleep", "600"}})
		}()
		<-started
		time.Sleep(50 * time.Millisecond) // lets the command begin; the test is also valid if it has not
	})
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a command that was cut off by Close ended without an error")
		}
	case <-time.After(c.Timeout):
		t.Error("a command outlived its place")
	}
}
