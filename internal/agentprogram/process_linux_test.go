package agentprogram

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
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/app/webapp"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/load/httpload"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/preflight"
)

// agentArgument makes the test's own program an agent, with a verb more.
const agentArgument = "be-an-agent"

const censusVerb = "census"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == agentArgument {
		runtime.LockOSThread() // as main does
		verbs := Verbs()
		verbs[censusVerb] = agent.Handle(takeCensus)
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

// A census is what an agent's process has.
type census struct {
	Process     int
	Descriptors int
	Listening   int
	Goroutines  int
	Procs       int
	Collect     int
	Heap        uint64
	Affinity    string // of all threads
	Priorities  string
}

func takeCensus(context.Context, agent.Call, struct{}) (census, error) {
	collect := debug.SetGCPercent(-1)
	debug.SetGCPercent(collect)
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	c := census{Process: os.Getpid(), Goroutines: runtime.NumGoroutine(), Procs: runtime.GOMAXPROCS(0),
		Collect: collect, Heap: memory.HeapAlloc}
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return c, err
	}
	c.Descriptors = len(links)
	for _, link := range links {
		if to, _ := os.Readlink(link); strings.HasPrefix(to, "socket:") {
			c.Listening++
		}
	}
	c.Affinity, c.Priorities = ofThreads("status", "Cpus_allowed_list:"), ofThreads("stat", "")
	return c, nil
}

// ofThreads are the different values of something that each thread of this process has, sorted.
func ofThreads(file, field string) string {
	found := map[string]bool{}
	names, _ := filepath.Glob("/proc/self/task/*/" + file)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
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

// crewed is this machine twice, with agents that live until the test ends.
func crewed(t *testing.T) (client, server host.Host) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	crew := agent.NewCrew()
	t.Cleanup(crew.Close)
	here := netip.MustParseAddr("127.0.0.1")
	on := func(name string) host.Host { return crew.On(host.NewLocal(name, here, nil, self, agentArgument)) }
	return on("client"), on("server")
}

// between runs a workload between two agents; the server is told in the middle of it.
func between(t *testing.T, client, server host.Host, w network.Spec, cpus []int) int64 {
	t.Helper()
	w.Warmup, w.Duration = 20*time.Millisecond, 200*time.Millisecond
	w, err := w.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	var lines atomic.Int64
	text, _ := netload.NewToken().MarshalText()
	at := netip.MustParseAddrPort("127.0.0.1:0")
	ask := func(h host.Host, c netload.Config, hear func(agent.Event)) {
		t.Helper()
		c.Workload, c.CPUs = w, cpus
		request := agent.Request{Verb: netload.Verb, Token: string(text), Body: c}
		r, err := agent.Do[netload.Report](t.Context(), h, request, func(e agent.Event) {
			lines.Add(1)
			hear(e)
		})
		if err != nil {
			t.Errorf("%s: %s: %v", w, c.Role, err)
		}
		if used := r.Cost.AgentUser + r.Cost.AgentSystem; used > 4*r.Cost.Window {
			t.Errorf("%s: the %s used %g s of CPU in %g s: another run's are among it", w, c.Role, used, r.Cost.Window)
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
	return lines.Load()
}

func taken(t *testing.T, h host.Host) census {
	t.Helper()
	c, err := agent.Do[census](t.Context(), h, agent.Request{Verb: censusVerb, Body: struct{}{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// keeps says that there is no more than another time, and that threads are as they were.
func (c census) keeps(want census) bool {
	return c.Descriptors <= want.Descriptors && c.Goroutines <= want.Goroutines && c.Listening == 0 &&
		c.Procs == want.Procs && c.Collect == want.Collect && c.Heap <= want.Heap+4<<20 &&
		c.Affinity == want.Affinity && c.Priorities == want.Priorities
}

// settled is a census after what ends by itself has ended.
func settled(t *testing.T, h host.Host, want census) census {
	t.Helper()
	for tries := 0; ; tries++ {
		c := taken(t, h)
		if c.keeps(want) || tries > 3000 {
			return c
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// The idle level is watched once in an agent's life, which is a block on one machine: not again by its later runs.
func TestIdleLevel(t *testing.T) {
	watched := 0
	n := netCarrier{watch: func(time.Duration) (float64, error) {
		if watched++; watched == 1 {
			return 0, errors.New("no /proc")
		}
		return float64(watched), nil
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
	if watched != 2 {
		t.Errorf("watched %d times", watched)
	}
}

// What a run leaves in the process does not touch the next one, whatever their kinds.
func TestRunsLeaveNothing(t *testing.T) {
	client, server := crewed(t)
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer site.Close()
	web := webapp.Config{Description: webapp.Description{URL: site.URL}}
	web.Description.Requests = []webapp.Request{{Name: "all", Path: "/"}}
	web.Pace, web.Times = family.Pace{Clients: 3}, family.Times{Window: 200 * time.Millisecond}
	everything := func() {
		for _, w := range []network.Spec{
			{Kind: network.TCPStream, Flows: 3}, {Kind: network.UDPStream, Rate: 2000, Size: 1000},
			{Kind: network.TCPRR, Flows: 2}, {Kind: network.UDPRR}, {Kind: network.TCPCRR}, {Kind: network.TCPRRLoaded},
		} {
			between(t, client, server, w, []int{0})
		}
		request := agent.Request{Verb: webapp.Verb, Body: web}
		if r, err := agent.Do[httpload.Result](t.Context(), client, request, nil); err != nil || r.CPU > 4*r.Window {
			t.Errorf("%+v, %v", r, err)
		}
		look := agent.Request{Verb: preflight.Verb, Body: preflight.Spec{Role: preflight.Witness, Patience: time.Second}}
		if _, err := agent.Do[preflight.Report](t.Context(), client, look, nil); err != nil {
			t.Error(err)
		}
	}
	before := map[host.Host]census{client: taken(t, client), server: taken(t, server)}
	for round := range 2 {
		everything()
		for h, first := range before {
			if c := settled(t, h, first); !c.keeps(first) {
				t.Errorf("%s: at first %+v, after %d rounds %+v", h.Name(), first, round+1, c)
			}
		}
	}
}

// A run of a network says when it is ready and how it ended, whatever it has to tell: no more than an API server that
// carries it can bear.
func TestQuiet(t *testing.T) {
	client, server := crewed(t)
	if lines := between(t, client, server, network.Spec{Kind: network.TCPRR}, nil); lines != 3 {
		t.Errorf("%d events", lines)
	}
}

// serverRequest is for a server without a client.
func serverRequest(w network.Spec) agent.Request {
	text, _ := netload.NewToken().MarshalText()
	c := netload.Config{Role: netload.Server, Addr: netip.MustParseAddrPort("127.0.0.1:0"), Workload: w}
	return agent.Request{Verb: netload.Verb, Token: string(text), Body: c}
}

// A server that waits for its client says where it listens, ends when it is told to, and listens no more.
func TestCancelled(t *testing.T) {
	_, server := crewed(t)
	w, err := network.Spec{Kind: network.UDPRR, Duration: time.Minute}.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	request := serverRequest(w)
	process := taken(t, server).Process
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		var at string
		_, err = agent.Do[netload.Report](ctx, server, request, func(e agent.Event) {
			if e.Event == agent.Ready {
				at = strings.Trim(string(e.Body), `"`)
				if c, err := net.Dial("tcp", at); err == nil { // somebody who says nothing
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
	if c := taken(t, server); c.Listening != 0 || c.Process != process { // an agent that does not obey is killed
		t.Errorf("%+v, at first process %d", c, process)
	}
}

// An agent that is killed in a run is replaced for the next one.
func TestKilled(t *testing.T) {
	client, server := crewed(t)
	w := network.Spec{Kind: network.TCPRR, Duration: time.Minute}
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
	between(t, client, server, network.Spec{Kind: network.TCPRR}, nil)
}

// killChildren kills the agents of this process.
func killChildren(t *testing.T) {
	t.Helper()
	for _, child := range children(t) {
		if err := child.Kill(); err != nil {
			t.Error(err)
		}
	}
}

// children are the processes that this one has started.
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
