package targettest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// A Program is the function that a host of a [Twin] runs instead of a process. It must return when ctx ends.
type Program func(ctx context.Context, h host.Host, c host.Cmd) error

// A Twin is an in-memory target: its places are Go values and its commands Go functions. The zero value offers all nine
// paths and never fails. Fields must be set before the first use.
type Twin struct {
	Label           string                 // prefix of the names of hosts, followed by "!"
	Environment     []result.Fact          // facts besides target.kind
	Unsupported     map[result.Path]string // unsupported paths, with the reasons
	Programs        map[string]Program     // by Args[0], besides echo, cat, sleep, false and place
	OpenTakes       time.Duration          // duration of Open
	UnderlayName    string                 // result of Underlay
	SharedResources []string               // result of Shares
	BeginFails      error                  // error of Begin
	Life            time.Duration          // result of SiteLife; 0: unlimited
	Busy            string                 // ID of another experiment that uses the target; empty: none
	// OpenFails returns the error of a place of the n-th Open, counted from 1; nil never fails.
	OpenFails func(n int, p targets.Placement) error
	// CloseFails is the error of closing a site, which is closed anyway.
	CloseFails error

	mu      sync.Mutex
	opens   int
	places  map[string]bool // open hosts, by hostKey
	running int             // number of running programs
	closed  bool
	begun   []targets.Plan
}

// Label returns the label of the twin that a host belongs to; empty for hosts of other targets.
func Label(h host.Host) string {
	label, _, ok := strings.Cut(h.Name(), "!")
	if !ok {
		return ""
	}
	return label
}

// Supports implements targets.Target.
func (t *Twin) Supports(p targets.Placement) error {
	if reason, ok := t.Unsupported[p.Path]; ok {
		return result.NotSupported(reason)
	}
	if err := p.Check(); err != nil {
		return err
	}
	if p.Path == "" {
		return result.NotSupported("a twin has nothing but paths")
	}
	if p.Program != "" && t.Programs[p.Program] == nil {
		return result.NotSupported(host.Missing(p.Program, t.Label))
	}
	return nil
}

// Begin implements targets.Target.
func (t *Twin) Begin(ctx context.Context, p targets.Plan) ([]string, error) {
	t.mu.Lock()
	t.begun = append(t.begun, p)
	t.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case t.BeginFails != nil || t.Busy == "" || t.Busy == p.Experiment:
		return nil, t.BeginFails
	case !p.Share:
		return nil, fmt.Errorf("the experiment %s runs here; wait for its end, or go on next to it with --share", t.Busy)
	}
	return []string{fmt.Sprintf("the experiment %s runs here too", t.Busy)}, nil
}

// Begun returns the plans of all calls of Begin.
func (t *Twin) Begun() []targets.Plan {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.begun)
}

// Facts implements targets.Target.
func (t *Twin) Facts(ctx context.Context) ([]result.Fact, error) {
	facts := []result.Fact{{Name: "target.kind", Value: "twin"}}
	return append(facts, t.Environment...), ctx.Err()
}

// Underlay implements targets.Underlaid.
func (t *Twin) Underlay() string { return t.UnderlayName }

// SiteLife implements targets.Expiring.
func (t *Twin) SiteLife() time.Duration { return cmp.Or(t.Life, math.MaxInt64) }

// Shares implements targets.Sharer.
func (t *Twin) Shares(ctx context.Context) ([]string, error) { return t.SharedResources, ctx.Err() }

// Open implements targets.Target.
func (t *Twin) Open(ctx context.Context, placements []targets.Placement) (targets.Site, error) {
	n, err := t.countOpen()
	if err != nil {
		return targets.Site{}, err
	}
	if err := Pause(ctx, t.OpenTakes); err != nil {
		return targets.Site{}, err
	}
	s := &twinSite{twin: t, number: n, hosts: map[string]*twinHost{}}
	s.life, s.end = context.WithCancel(context.Background())
	var places []targets.Place
	for _, p := range placements {
		err := t.Supports(p)
		if err == nil && t.OpenFails != nil {
			err = t.OpenFails(n, p)
		}
		if errors.Is(err, targets.ErrUnavailable) {
			return targets.Site{}, errors.Join(err, s.close(ctx))
		}
		if err != nil {
			places = append(places, targets.Place{Err: err})
			continue
		}
		places = append(places, s.place(p))
	}
	return targets.Site{Places: places, Close: s.close}, nil
}

// countOpen counts a call of Open and returns its number.
func (t *Twin) countOpen() (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return 0, errors.New("the target is closed")
	}
	t.opens++
	return t.opens, nil
}

// A twinSite is a site of a twin, whose places share hosts.
type twinSite struct {
	twin     *Twin
	number   int
	life     context.Context // ends with the site
	end      context.CancelFunc
	programs sync.WaitGroup
	hosts    map[string]*twinHost // by name
}

// place returns the place of a placement on two nodes, which swap roles in odd rotations.
func (s *twinSite) place(p targets.Placement) targets.Place {
	client, server := 1+p.Rotation%2, 1+p.Rotation%2
	if p.Path.Other() {
		server = 3 - client
	}
	a := s.host(s.twin.hostName(client, "client", p.Path.ClientPod()), 1)
	b := s.host(s.twin.hostName(server, "server", p.Path.ServerPod()), 2)
	listen := netip.AddrPortFrom(b.addr, 5201)
	dial := listen
	if p.Path.Service() {
		dial = netip.AddrPortFrom(netip.AddrFrom4([4]byte{172, 16, byte(s.number), 1}), 5201)
	}
	return targets.Place{
		Pair: host.Pair{Client: a, Server: b, Dial: dial, Listen: listen, Shared: true, MTU: 1500},
		Facts: []result.Fact{
			{Name: "client.node", Value: fmt.Sprintf("node%d", client)},
			{Name: "server.node", Value: fmt.Sprintf("node%d", server)},
		},
	}
}

// host returns the host of the site with a name; last is the last byte of the address of a new one.
func (s *twinSite) host(name string, last byte) *twinHost {
	if s.hosts[name] == nil {
		addr := netip.AddrFrom4([4]byte{10, byte(s.number >> 8), byte(s.number), last})
		s.hosts[name] = &twinHost{site: s, name: name, addr: addr}
		s.twin.mu.Lock()
		defer s.twin.mu.Unlock()
		if s.twin.places == nil {
			s.twin.places = map[string]bool{}
		}
		s.twin.places[s.hostKey(name)] = true
	}
	return s.hosts[name]
}

// hostKey returns the key of a host in Twin.places.
func (s *twinSite) hostKey(name string) string { return fmt.Sprintf("%s#%d", name, s.number) }

// close removes the hosts of a site and returns when their programs have ended.
func (s *twinSite) close(ctx context.Context) error {
	// A real target cannot send requests with a context that has ended, so callers that pass one must get an error.
	if ctx.Err() != nil {
		return ctx.Err()
	}
	t := s.twin
	t.mu.Lock()
	s.end()
	t.mu.Unlock()
	s.programs.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range s.hosts {
		delete(t.places, s.hostKey(name))
	}
	return t.CloseFails
}

// hostName returns the name of a host, as real targets build it.
func (t *Twin) hostName(node int, role string, pod bool) string {
	name := fmt.Sprintf("%s!node%d", t.Label, node)
	switch {
	case pod:
		return name + "/" + role
	case role == "server":
		return name + "/host"
	}
	return name
}

// Close implements targets.Target.
func (t *Twin) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errors.New("the target is closed twice")
	}
	t.closed = true
	return nil
}

// Left returns the open places and running programs of the twin.
func (t *Twin) Left() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := slices.Sorted(maps.Keys(t.places))
	for range t.running {
		left = append(left, "a program")
	}
	return left
}

// Opens returns how often Open was called.
func (t *Twin) Opens() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.opens
}

// A twinHost is a host of a twin.
type twinHost struct {
	site *twinSite
	name string
	addr netip.Addr
}

func (h *twinHost) Name() string     { return h.name }
func (h *twinHost) Addr() netip.Addr { return h.addr }
func (h *twinHost) CPUs() []int      { return nil }

func (h *twinHost) Run(ctx context.Context, c host.Cmd) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	program := h.program(c)
	if program == nil {
		return fmt.Errorf("on %s: %s: %w", h.name, c, host.ErrNoCommand)
	}
	if !h.beginProgram() {
		return fmt.Errorf("on %s: %s: the host is gone", h.name, c)
	}
	defer h.endProgram()
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.site.life, cancel)()
	err := program(both, h, c)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// beginProgram counts a program as running; it returns false if the site is closed.
func (h *twinHost) beginProgram() bool {
	h.site.twin.mu.Lock()
	defer h.site.twin.mu.Unlock()
	if h.site.life.Err() != nil {
		return false
	}
	h.site.programs.Add(1)
	h.site.twin.running++
	return true
}

// endProgram counts a program as ended.
func (h *twinHost) endProgram() {
	h.site.twin.mu.Lock()
	h.site.twin.running--
	h.site.twin.mu.Unlock()
	h.site.programs.Done()
}

// program returns the program of a command; nil if there is none.
func (h *twinHost) program(c host.Cmd) Program {
	if len(c.Args) == 0 {
		return nil
	}
	if p := h.site.twin.Programs[c.Args[0]]; p != nil {
		return p
	}
	switch c.Args[0] {
	case "echo":
		return func(_ context.Context, _ host.Host, c host.Cmd) error {
			return writeOutput(c, strings.Join(c.Args[1:], " ")+"\n")
		}
	case "cat":
		return cat
	case "place":
		return func(_ context.Context, _ host.Host, c host.Cmd) error {
			return writeOutput(c, fmt.Sprint(h.site.number))
		}
	case "sleep":
		return sleep
	case "false":
		return func(_ context.Context, h host.Host, c host.Cmd) error {
			return &host.ExitError{Command: c.String(), Host: h.Name(), Status: 1}
		}
	}
	return nil
}

// writeOutput writes text to the standard output of a command, if it has one.
func writeOutput(c host.Cmd, text string) error {
	if c.Stdout == nil {
		return nil
	}
	_, err := io.WriteString(c.Stdout, text)
	return err
}

func cat(_ context.Context, _ host.Host, c host.Cmd) error {
	if c.Stdin == nil || c.Stdout == nil {
		return nil
	}
	_, err := io.Copy(c.Stdout, c.Stdin)
	return err
}

func sleep(ctx context.Context, h host.Host, c host.Cmd) error {
	d, err := time.ParseDuration(strings.Join(c.Args[1:], "") + "s")
	if err != nil {
		return &host.ExitError{Command: c.String(), Host: h.Name(), Status: 1, Stderr: err.Error()}
	}
	return Pause(ctx, d)
}

// Pause waits for d. It returns the error of ctx if that ends earlier.
func Pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
