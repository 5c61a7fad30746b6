package program

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/family/app/webapp"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/load/httpload"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/preflight"
)

// agentArgument makes the test's own program an agent, with the additional verb stateVerb.
const (
	agentArgument = "be-an-agent"
	stateVerb     = "process-state"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == agentArgument {
		runtime.LockOSThread() // as main does
		verbs := Verbs()
		verbs[stateVerb] = agent.Handle(readState)
		if agent.Serve(context.Background(), os.Stdin, os.Stdout, agent.Program{Verbs: verbs}) != nil {
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && (os.Args[1] == remote.ExecCommand || os.Args[1] == remote.AgentCommand) {
		if Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr) != nil {
			os.Exit(1)
		}
		return
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(m.Run())
}

// A processState holds the resources and settings of an agent's process.
type processState struct {
	Process     int // identifier
	Descriptors int
	Sockets     int
	Goroutines  int
	Procs       int    // GOMAXPROCS
	GCPercent   int    // of the garbage collector
	Heap        uint64 // bytes
	Affinity    string // of all threads
	Priorities  string // of all threads
}

// readState returns the state of this process.
func readState(context.Context, agent.Call, struct{}) (processState, error) {
	percent := debug.SetGCPercent(-1)
	debug.SetGCPercent(percent)
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	c := processState{Process: os.Getpid(), Goroutines: runtime.NumGoroutine(), Procs: runtime.GOMAXPROCS(0),
		GCPercent: percent, Heap: memory.HeapAlloc}
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return c, err
	}
	c.Descriptors = len(links)
	for _, link := range links {
		if to, _ := os.Readlink(link); strings.HasPrefix(to, "socket:") {
			c.Sockets++
		}
	}
	c.Affinity, c.Priorities = threadValues("status", "Cpus_allowed_list:"), threadValues("stat", "")
	return c, nil
}

// threadValues returns the different values of a field of all threads of this process, sorted; without a field, their
// priority, nice value and policy.
func threadValues(file, field string) string {
	found := map[string]bool{}
	names, _ := filepath.Glob("/proc/self/task/*/" + file)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		if field == "" {
			_, rest, _ := strings.Cut(string(text), ") ")
			words := strings.Fields(rest)
			found[strings.Join([]string{words[15], words[16], words[38]}, " ")] = true // priority, nice, policy
			continue
		}
		_, rest, _ := strings.Cut(string(text), field)
		value, _, _ := strings.Cut(rest, "\n")
		found[strings.TrimSpace(value)] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), ", ")
}

// startAgents returns this machine as client and server, with agents that live until the test ends.
func startAgents(t *testing.T) (client, server host.Host) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pool := agent.NewPool()
	t.Cleanup(pool.Close)
	here := netip.MustParseAddr("127.0.0.1")
	on := func(name string) host.Host { return pool.On(host.NewLocal(name, here, nil, self, agentArgument)) }
	return on("client"), on("server")
}

// runBetween runs a workload between two agents, and returns the number of their events. The client starts when the
// server is ready.
func runBetween(t *testing.T, client, server host.Host, w netload.Spec, cpus []int) int64 {
	t.Helper()
	w.Warmup, w.Duration = 20*time.Millisecond, 200*time.Millisecond
	w, err := w.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	var events atomic.Int64
	text, _ := netload.NewToken().MarshalText()
	at := netip.MustParseAddrPort("127.0.0.1:0")
	ask := func(h host.Host, c netload.Config, hear func(agent.Event)) {
		t.Helper()
		c.Workload, c.CPUs = w, cpus
		request := agent.Request{Verb: netload.Verb, Token: string(text), Body: c}
		r, err := agent.Do[netload.Report](t.Context(), h, request, func(e agent.Event) {
			events.Add(1)
			hear(e)
		})
		if err != nil {
			t.Errorf("%s: %s: %v", w.Kind, c.Role, err)
		}
		if used := r.Cost.AgentUser + r.Cost.AgentSystem; used > 4*r.Cost.Window {
			t.Errorf("%s: the %s used %g s of CPU in %g s: another run's are among it", w.Kind, c.Role, used, r.Cost.Window)
		}
	}
	var both sync.WaitGroup
	both.Go(func() {
		ask(server, netload.Config{Role: netload.Server, Addr: at}, func(e agent.Event) {
			if e.Event != agent.Ready {
				return
			}
			dial := netip.MustParseAddrPort(strings.Trim(string(e.Body), `"`))
			both.Go(func() {
				ask(client, netload.Config{Role: netload.Client, Addr: dial}, func(agent.Event) {})
			})
		})
	})
	both.Wait()
	return events.Load()
}

// stateOf returns the state of a host's agent.
func stateOf(t *testing.T, h host.Host) processState {
	t.Helper()
	c, err := agent.Do[processState](t.Context(), h, agent.Request{Verb: stateVerb, Body: struct{}{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// asBefore reports whether the process has no more resources than before, no socket, and the same settings.
func (c processState) asBefore(before processState) bool {
	return c.Descriptors <= before.Descriptors && c.Goroutines <= before.Goroutines && c.Sockets == 0 &&
		c.Procs == before.Procs && c.GCPercent == before.GCPercent && c.Heap <= before.Heap+4<<20 &&
		c.Affinity == before.Affinity && c.Priorities == before.Priorities
}

// awaitState waits until the state of a host's agent is as before, for at most 30 s, and returns the last state.
func awaitState(t *testing.T, h host.Host, before processState) processState {
	t.Helper()
	for tries := 0; ; tries++ {
		c := stateOf(t, h)
		if c.asBefore(before) || tries > 3000 {
			return c
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestIdleLevel checks that the idle level is measured once in an agent's life, which is a block on one machine, and
// not again in later runs.
func TestIdleLevel(t *testing.T) {
	measured := 0
	n := netRunner{measure: func(time.Duration) (float64, error) {
		if measured++; measured == 1 {
			return 0, errors.New("no /proc")
		}
		return float64(measured), nil
	}}
	for i, want := range []float64{0, 0, 2, 2, 2} {
		d := time.Second
		if i == 0 {
			d = 0
		}
		if got, err := n.idleLevel(d); got != want || (err != nil) != (i == 1) {
			t.Errorf("call %d: %g, %v; want %g", i+1, got, err, want)
		}
	}
	if measured != 2 {
		t.Errorf("measured %d times", measured)
	}
}

// TestRunsLeaveNothing checks that no run, whatever its kind, leaves resources or changed settings in the process.
func TestRunsLeaveNothing(t *testing.T) {
	client, server := startAgents(t)
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer site.Close()
	web := webapp.Config{Description: webapp.Description{URL: site.URL}}
	web.Description.Requests = []webapp.Request{{Name: "all", Path: "/"}}
	web.Load = httpload.Load{Clients: 3, Window: 200 * time.Millisecond}
	everything := func() {
		for _, w := range []netload.Spec{
			{Kind: netload.TCPStream, Flows: 3}, {Kind: netload.UDPStream, Rate: 2000, Size: 1000},
			{Kind: netload.TCPRR, Flows: 2}, {Kind: netload.UDPRR}, {Kind: netload.TCPCRR}, {Kind: netload.TCPRRLoaded},
		} {
			runBetween(t, client, server, w, []int{0})
		}
		request := agent.Request{Verb: webapp.Verb, Body: web}
		if r, err := agent.Do[httpload.Result](t.Context(), client, request, nil); err != nil || r.CPU > 4*r.Window {
			t.Errorf("%+v, %v", r, err)
		}
		check := agent.Request{Verb: preflight.Verb, Body: preflight.Spec{Role: preflight.Witness, Timeout: time.Second}}
		if _, err := agent.Do[preflight.Report](t.Context(), client, check, nil); err != nil {
			t.Error(err)
		}
	}
	before := map[host.Host]processState{client: stateOf(t, client), server: stateOf(t, server)}
	for round := range 2 {
		everything()
		for h, first := range before {
			if c := awaitState(t, h, first); !c.asBefore(first) {
				t.Errorf("%s: at first %+v, after %d rounds %+v", h.Name(), first, round+1, c)
			}
		}
	}
}

// TestQuiet checks that a network run has three events, however long its results: ready, and the end of both agents.
// The API server that forwards them is not loaded with more.
func TestQuiet(t *testing.T) {
	client, server := startAgents(t)
	if events := runBetween(t, client, server, netload.Spec{Kind: netload.TCPRR}, nil); events != 3 {
		t.Errorf("%d events", events)
	}
}

// serverRequest returns the request of a server without a client.
func serverRequest(w netload.Spec) agent.Request {
	text, _ := netload.NewToken().MarshalText()
	c := netload.Config{Role: netload.Server, Addr: netip.MustParseAddrPort("127.0.0.1:0"), Workload: w}
	return agent.Request{Verb: netload.Verb, Token: string(text), Body: c}
}

// TestCancelled checks that a server that waits for its client reports where it listens, ends when it is cancelled, and
// then listens no more.
func TestCancelled(t *testing.T) {
	_, server := startAgents(t)
	w, err := netload.Spec{Kind: netload.UDPRR, Duration: time.Minute}.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	request := serverRequest(w)
	process := stateOf(t, server).Process
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		var at string
		_, err = agent.Do[netload.Report](ctx, server, request, func(e agent.Event) {
			if e.Event == agent.Ready {
				at = strings.Trim(string(e.Body), `"`)
				if c, err := net.Dial("tcp", at); err == nil { // a client that sends nothing
					t.Cleanup(func() { c.Close() })
				}
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if c, err := net.Dial("tcp", at); err == nil {
			c.Close()
			t.Errorf("somebody still listens at %s", at)
		}
	}
	if c := stateOf(t, server); c.Sockets != 0 || c.Process != process { // an agent that does not cancel is killed
		t.Errorf("%+v, at first process %d", c, process)
	}
}

// TestKilled checks that an agent that is killed during a run is replaced for the next run.
func TestKilled(t *testing.T) {
	client, server := startAgents(t)
	w := netload.Spec{Kind: netload.TCPRR, Duration: time.Minute}
	w, err := w.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	_, err = agent.Do[netload.Report](t.Context(), server, serverRequest(w), func(e agent.Event) {
		if e.Event == agent.Ready {
			killChildren(t)
		}
	})
	var exit *host.ExitError
	if !errors.As(err, &exit) || exit.Status != -1 {
		t.Errorf("a killed agent: %v", err)
	}
	runBetween(t, client, server, netload.Spec{Kind: netload.TCPRR}, nil)
}

// killChildren kills the agents that this process started.
func killChildren(t *testing.T) {
	t.Helper()
	for _, child := range children(t) {
		if err := child.Kill(); err != nil {
			t.Error(err)
		}
	}
}

// children returns the processes that this one started.
func children(t *testing.T) (all []*os.Process) {
	t.Helper()
	files, _ := filepath.Glob("/proc/self/task/*/children")
	for _, name := range files {
		text, _ := os.ReadFile(name)
		for _, word := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			if p, err := os.FindProcess(pid); err == nil {
				all = append(all, p)
			}
		}
	}
	return all
}
