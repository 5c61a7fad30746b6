package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/agent/program"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/api"
	"github.com/knotmeter/knotmeter/internal/family/app"
	"github.com/knotmeter/knotmeter/internal/family/app/webapp"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/httpload"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/result"
)

// agentArgument makes the test's own program an agent.
const agentArgument = "be-an-agent"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == agentArgument {
		if program.ServeAgent(context.Background(), os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		return
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(m.Run())
}

// localPair returns this machine as the client, with an agent.
func localPair(t *testing.T) host.Pair {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return host.Pair{Client: host.NewLocal("client", netip.MustParseAddr("127.0.0.1"), nil, self, agentArgument),
		Shared: true}
}

// application returns a short run of a workload of the family app.
func application(t *testing.T, name, text string) plannedRun {
	t.Helper()
	w, err := app.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	return timed(t, w)
}

// call returns a short run of a workload of the family api.
func call(t *testing.T, text string) plannedRun {
	t.Helper()
	w, err := api.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return timed(t, w)
}

func timed(t *testing.T, w family.Workload) plannedRun {
	t.Helper()
	a, err := planRun(w, family.Times{Warmup: 50 * time.Millisecond, Window: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func runTool(t *testing.T, tool *Tool, p host.Pair, a plannedRun) (result.Measurement, error) {
	t.Helper()
	return tool.Run(t.Context(), p, a.workload, a.Times)
}

func description(url string) string {
	return fmt.Sprintf(`
url: %s
requests:
- {name: read, weight: 2, path: "/"}
- name: write
  method: POST
  path: /x
  body: "{{random 8}}"
  secrets: {Authorization: {env: SHOP_TOKEN, prefix: "Bearer "}}
`, url)
}

// TestRunSearchesClients checks that a real agent searches the number of clients that saturates a real server, which
// serves two requests at a time. The result depends on the machine, but must be within the range, and the trials must
// be facts.
func TestRunSearchesClients(t *testing.T) {
	two := make(chan struct{}, 2)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		two <- struct{}{}
		time.Sleep(5 * time.Millisecond)
		<-two
	}))
	defer s.Close()
	w := application(t, "http/shop:clients=1-8", "url: "+s.URL+"\nrequests:\n- {name: read, path: /}\n")
	m, err := runTool(t, New(), localPair(t), w)
	if err != nil {
		t.Fatal(err)
	}
	run := result.Run{Values: m.Values, Facts: m.Facts}
	clients, has := run.Value("clients")
	if !has || clients.Number < 1 || clients.Number > 8 || run.Fact("trial.01") == "" || run.Fact("clients.found") == "" {
		t.Errorf("%+v of %v, %v", clients, m.Facts, m.Invalid)
	}
}

// TestRun checks that the result of a real agent and a real server becomes a measurement, without the secret.
func TestRun(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" && r.Header.Get("Authorization") != "Bearer s3cret" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer s.Close()
	tool := New()
	tool.from.Getenv = func(string) string { return "s3cret" }
	for _, name := range []string{"http/shop:rate=100", "http/shop:clients=2"} {
		t.Run(name, func(t *testing.T) {
			w := application(t, name, description(s.URL))
			m, err := runTool(t, tool, localPair(t), w)
			if err != nil {
				t.Fatal(err)
			}
			var metrics []string
			for _, v := range m.Values {
				metrics = append(metrics, v.Metric)
			}
			for _, want := range []string{w.Traits().Metric, "p50", "rate", "failed",
				"read-p50", "write-p50", "service-p50", "connect-mean", "mean", "cpu-agents"} {
				if !slices.Contains(metrics, want) {
					t.Errorf("%s is not among %v", want, metrics)
				}
			}
			loop := "open"
			if w.Clients > 0 {
				loop = "closed"
			}
			if w.Clients > 0 && result.FactOf(m.Facts, "concurrency") != "2" {
				t.Errorf("%+v", m.Facts)
			}
			if result.FactOf(m.Facts, "loop") != loop || len(m.Histograms) != 1 || len(m.Series) != 1 {
				t.Errorf("%+v", m.Facts)
			}
			for _, f := range m.Raw {
				if strings.Contains(string(f.Data), "s3cret") {
					t.Errorf("%s has the secret", f.Name)
				}
			}
		})
	}
}

func TestErrors(t *testing.T) {
	tool := New()
	tool.from.Getenv = func(string) string { return "" }
	for name, test := range map[string]struct {
		text string
		want error
	}{
		"no YAML":  {"{", webapp.ErrDescription},
		"unknown":  {"uri: x", webapp.ErrDescription},
		"no token": {description("http://127.0.0.1:1"), webapp.ErrDescription},
		"no CA":    {"{url: 'https://x', ca: /nonexistent, requests: [{name: a, path: /}]}", os.ErrNotExist},
	} {
		if _, err := runTool(t, tool, localPair(t), application(t, "http/x", test.text)); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := runTool(t, tool, localPair(t),
		application(t, "http/x", "{url: 'http://127.0.0.1:1', requests: [{name: a, path: /}]}"))
	if err == nil || !strings.Contains(err.Error(), "no connection to [127.0.0.1:1]") {
		t.Errorf("nobody listens: %v", err)
	}
	if err := tool.Supports(network.Workload{}); !errors.Is(err, result.ErrNotSupported) {
		t.Error(err)
	}
}

// TestFewDue checks that a window that is too short for a median is an error before any request, which names a window
// that is long enough.
func TestFewDue(t *testing.T) {
	p := localPair(t)
	p.Endpoint = host.Endpoint{URL: "http://127.0.0.1:1", Namespace: "x"}
	for duration, want := range map[time.Duration]bool{500 * time.Millisecond: true,
		5 * time.Second: true, 6 * time.Second: false} {
		w := call(t, "pod-startup")
		w.Times = family.Times{Warmup: 200 * time.Millisecond, Window: duration}
		_, err := runTool(t, New(), p, w)
		if err == nil || errors.Is(err, result.ErrNotSupported) != want ||
			strings.Contains(err.Error(), "and a median takes 6: a window of 6s has them") != want {
			t.Errorf("%v: %v", duration, err)
		}
	}
}

// TestFailures checks that a run is invalid if the server refuses requests, whatever its speed.
func TestFailures(t *testing.T) {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1)%10 == 0 {
			w.WriteHeader(http.StatusTemporaryRedirect)
		}
	}))
	defer s.Close()
	m, err := runTool(t, New(), localPair(t), application(t, "http/x:rate=100",
		fmt.Sprintf("{url: '%s', requests: [{name: a, path: /}]}", s.URL)))
	said := strings.Join(result.Texts(m.Invalid), ";")
	if err != nil || len(m.Invalid) == 0 || !strings.Contains(said, "× status 307") {
		t.Errorf("%v, %v", m.Invalid, err)
	}
}

// TestFailuresInLatency checks that all workloads have the same limit on failures, and that failures, however fast,
// make no latency better.
func TestFailuresInLatency(t *testing.T) {
	encode := func(n int64, d time.Duration) string {
		h := netload.NewHistogram()
		for range n {
			h.Record(int64(d))
		}
		return h.Encode()
	}
	get := call(t, "configmap/get")
	open, closed := application(t, "vault/mix:rate=400", ""), application(t, "vault/mix:clients=4", "")
	near := func(got, want float64) bool { return math.Abs(got/want-1) < 2e-3 }
	for name, w := range map[string]plannedRun{"open": open, "closed": closed, "api": get} {
		for _, test := range []struct {
			failed  uint64
			after   time.Duration
			p99     float64
			longest float64
			valid   bool
		}{
			{4, time.Microsecond, 0.010, 0.010, true}, {4, time.Minute, 0.010, 60, true},
			{5, time.Microsecond, 0.010, 0.010, false}, {8, time.Minute, 60, 60, false},
		} {
			total := httpload.Tally{OK: 400 - test.failed, Errors: map[string]uint64{httpload.TimedOut: test.failed}}
			total.Latency = encode(int64(400-test.failed), 10*time.Millisecond)
			total.Waited = encode(int64(test.failed), test.after)
			m, err := merge(w, httpload.Result{Report: httpload.Report{Window: 1, Planned: 400, Total: total}})
			if err != nil {
				t.Fatal(err)
			}
			run := result.Run{Values: m.Values}
			p50, _ := run.Value("p50")
			p99, _ := run.Value("p99")
			longest, _ := run.Value("max")
			if !near(p50.Number, 0.010) || !near(p99.Number, test.p99) || !near(longest.Number, test.longest) ||
				(len(m.Invalid) == 0) != test.valid || m.Histograms[0].Count != 400 {
				t.Errorf("%s, %d failed after %v: p50 %g, p99 %g, max %g, invalid for %q",
					name, test.failed, test.after, p50.Number, p99.Number, longest.Number, m.Invalid)
			}
			said := fmt.Sprintf("%d of 400 requests failed (", test.failed)
			if all := strings.Join(result.Texts(slices.Concat(m.Invalid, m.Warnings)), "; "); !strings.Contains(all, said) {
				t.Errorf("%s: %s", name, all)
			}
		}
	}
}

// TestSaturation checks that a server that can serve 50 requests per second is reported as saturated at 200, and not at
// 10.
func TestSaturation(t *testing.T) {
	var one sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		defer one.Unlock()
		time.Sleep(20 * time.Millisecond)
	}))
	defer s.Close()
	text := fmt.Sprintf("{url: '%s', requests: [{name: a, path: /}]}", s.URL)
	for name, want := range map[string]string{"http/x:rate=200": "yes", "http/x:rate=10": "no"} {
		w := application(t, name, text)
		w.Window = time.Second
		m, err := runTool(t, New(), localPair(t), w)
		for range 4 { // a machine that stops the generator for a while says nothing about the server
			if err != nil || len(m.Invalid) == 0 {
				break
			}
			m, err = runTool(t, New(), localPair(t), w)
		}
		if result.FactOf(m.Facts, "saturated") != want || err != nil {
			t.Errorf("%s: saturated is %q, %v, %v", name, result.FactOf(m.Facts, "saturated"), m.Invalid, err)
		}
		if said := strings.Contains(strings.Join(result.Texts(m.Warnings), "; "),
			"saturated: of 200 requests per second"); said != (want == "yes") {
			t.Errorf("%s: %v", name, m.Warnings)
		}
	}
}

// startChunkServer starts a server that answers every request with many chunks of one byte. It writes a response at
// once, but each chunk is work for the generator, which therefore needs more CPU than the server on every machine.
func startChunkServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	const pieces = 10_000
	text := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1\r\na\r\n", pieces) + "0\r\n\r\n"
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for {
					if _, err := http.ReadRequest(in); err != nil {
						return
					}
					if _, err := io.WriteString(c, text); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// TestGeneratorLimited checks that a generator without enough CPU to read the responses is reported as the limit, and
// that the run is invalid. The server is not reported as saturated, though many requests go unanswered.
func TestGeneratorLimited(t *testing.T) {
	t.Setenv("GOMAXPROCS", "1")
	url := startChunkServer(t)
	for name, load := range map[string]string{"open": "rate=20000", "closed": "clients=64"} {
		w := application(t, "http/x:"+load, fmt.Sprintf("{url: '%s', maxConnections: 64, timeout: 4s, requests: [{name: a, "+
			"path: /}]}", url))
		w.Window = 2 * time.Second
		m, err := runTool(t, New(), localPair(t), w)
		if err != nil || !strings.Contains(strings.Join(result.Texts(m.Invalid), "; "), "the generator was ") ||
			!strings.HasPrefix(result.FactOf(m.Facts, "generator.limited"), "yes") {
			t.Errorf("%s: %v, %v, %v; %s", name, m.Invalid, m.Facts, err, regexp.MustCompile(`"wake":[^,]*`).Find(m.Raw[2].Data))
		}
		if n, err := strconv.Atoi(result.FactOf(m.Facts, "connections.at-once")); err != nil || n > 64 {
			t.Errorf("%s: %d connections at once, %v", name, n, err)
		}
		if s := result.FactOf(m.Facts, "saturated"); name == "open" && !strings.HasPrefix(s, "unknown") {
			t.Errorf("saturated is %q", s)
		}
		if strings.Contains(strings.Join(result.Texts(m.Warnings), "; "), "saturated") {
			t.Errorf("%s: %v", name, m.Warnings)
		}
	}
}

// TestMergeWake checks that a generator that read no response can have been the limit, and that one that did not wait
// for a CPU was not.
func TestMergeWake(t *testing.T) {
	h := netload.NewHistogram()
	for range 400 {
		h.Record(10e6)
	}
	text := h.Encode()
	for name, test := range map[string]struct {
		wake    float64
		service string
		limited bool
	}{
		"well": {100e-6, text, false}, "a twentieth": {0.5e-3, text, false}, "a fifth": {2e-3, text, true},
		"mute server": {5e-6, "", false}, "no answer was read": {0.1, "", true},
	} {
		r := httpload.Result{Report: httpload.Report{Window: 1, Planned: 400,
			Total: httpload.Tally{OK: 400, Latency: text}, Service: test.service, Wake: test.wake, Steps: []uint64{1}}}
		m, err := merge(application(t, "vault/mix:rate=400", ""), r)
		saturated := result.FactOf(m.Facts, "saturated")
		if err != nil || (len(m.Invalid) > 0) != test.limited ||
			strings.HasPrefix(saturated, "unknown") != test.limited || (saturated == "yes") == test.limited {
			t.Errorf("%s: %v, saturated %q, %v", name, m.Invalid, saturated, err)
		}
	}
}

// TestMergeSearch checks that a search reports its trials, and whether the generator ended it.
func TestMergeSearch(t *testing.T) {
	h := netload.NewHistogram()
	for i := range int64(400) {
		h.Record(1e6 + i)
	}
	text := h.Encode()
	r := httpload.Result{
		Report: httpload.Report{Window: 2, Planned: 410,
			Total: httpload.Tally{OK: 406, Statuses: map[int]uint64{429: 3, 500: 1}, Latency: text}, RetryAfter: 3},
		Trials: []httpload.Trial{{Rate: 50, P99: 0.01, Planned: 100}}, Limited: true,
		Facts: map[string]string{"leader": "a"}, Distributions: []httpload.Distribution{{Name: "request", Encoded: text}},
	}
	w := call(t, "configmap/watch:knee=100ms")
	m, err := merge(w, r)
	if err != nil || len(m.Invalid) > 0 {
		t.Fatalf("%v, %v", m.Invalid, err)
	}
	got := map[string]float64{}
	for _, v := range m.Values {
		got[v.Metric] = v.Number
	}
	if got["rate"] != 203 || math.Abs(got["failed"]-4.0/410) > 1e-9 ||
		math.Abs(got["request-p99"]-1e-3) > 1e-5 || got["offered"] != 205 {
		t.Errorf("%v", got)
	}
	for name, want := range map[string]string{"trial.01": "50.0/s: p99 0.01 s, 0 of 100 failed",
		"status.429": "3", "leader": "a", "retry-after": "3"} {
		if result.FactOf(m.Facts, name) != want {
			t.Errorf("%s is %q", name, result.FactOf(m.Facts, name))
		}
	}
	const said = "4 of 410 requests failed (0.976 %; the limit is 1.00 %): 3 × status 429, 1 × status 500"
	if all := strings.Join(result.Texts(m.Warnings), "; "); !strings.Contains(all, "lower bound") ||
		!strings.Contains(all, said) {
		t.Error(all)
	}
	// Values that the agent computes are in the cases that list them.
	r.Values = map[string]float64{"pods-per-minute": 55}
	if _, has := (result.Run{Values: m.Values}).Value("pods-per-minute"); has {
		t.Error("a watch starts pods")
	}
	starts, err := merge(call(t, "pod-startup"), r)
	if v, has := (result.Run{Values: starts.Values}).Value("pods-per-minute"); err != nil || !has || v.Number != 55 {
		t.Errorf("%+v, %v", v, err)
	}
	// The run is invalid if requests fail at the rate that a search found.
	r.Total.OK, r.Total.Statuses[429] = 405, 4
	if m, err = merge(application(t, "vault/mix:knee=100ms", ""), r); err != nil || len(m.Invalid) != 1 {
		t.Errorf("%v, %v", m.Invalid, err)
	}
	// An agent of another version may return anything.
	r.Total.Latency = "nonsense"
	if _, err := merge(application(t, "vault/mix", ""), r); err == nil {
		t.Error("a histogram that is none was taken")
	}
}

// TestMergeSaturation checks that a search for clients reports how many saturate the server, its trials, and that a
// rate that still rose is a lower bound.
func TestMergeSaturation(t *testing.T) {
	h := netload.NewHistogram()
	for i := range int64(400) {
		h.Record(1e6 + i)
	}
	r := httpload.Result{
		Report: httpload.Report{Window: 2, Planned: 400, Total: httpload.Tally{OK: 400, Latency: h.Encode()}},
		Trials: []httpload.Trial{{Clients: 1, Rate: 150, P50: 0.005, P99: 0.01, Planned: 100},
			{Clients: 12, Rate: 200, P50: 0.01, P99: 0.02, Planned: 200, Failed: 1}},
		Clients: 12, TooFew: 11, Step: httpload.Saturated,
	}
	w := application(t, "vault/mix:clients=1-64", "")
	for _, c := range []struct {
		clients, tooFew int
		rises, limited  bool
		found, warned   string
	}{
		{12, 11, false, false, "saturated with 12: more raise the rate by at most 5 %; 11 are too few", ""},
		{1, 0, false, false, "saturated with 1: more raise the rate by at most 5 %", ""},
		{64, 50, true, false, "not saturated with 64, the most without failures",
			"the rate is a lower bound: it still rose at 64 clients, the most that were tried without failures"},
		{64, 50, true, true, "not saturated with 64, the most without failures",
			"the rate is a lower bound: the generator, not the server, ended the search"},
	} {
		r.Clients, r.TooFew, r.Rises, r.Limited = c.clients, c.tooFew, c.rises, c.limited
		m, err := merge(w, r)
		if err != nil || len(m.Invalid) > 0 {
			t.Fatalf("%v, %v", m.Invalid, err)
		}
		run := result.Run{Values: m.Values, Facts: m.Facts}
		rate, _ := run.Value("rate")
		clients, _ := run.Value("clients")
		if rate.Number != 200 || rate.Step != httpload.Saturated || clients.Number != float64(c.clients) {
			t.Errorf("%+v, %+v", rate, clients)
		}
		if _, has := run.Value("offered"); has {
			t.Error("a closed loop offers a rate")
		}
		for name, want := range map[string]string{"clients.found": c.found, "loop": "closed",
			"concurrency": strconv.Itoa(c.clients), "trial.01": "1 client: 150.0/s, p50 0.005 s, p99 0.01 s, 0 of 100 failed",
			"trial.02": "12 clients: 200.0/s, p50 0.01 s, p99 0.02 s, 1 of 200 failed"} {
			if got := run.Fact(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		m.Warnings = slices.DeleteFunc(m.Warnings, func(w result.Warning) bool { return w.Code != result.LowerBound })
		if got := strings.Join(result.Texts(m.Warnings), "; "); got != c.warned {
			t.Errorf("warnings %q, want %q", got, c.warned)
		}
	}
}

// TestLacks checks that a case is not supported, with the reason, if the endpoint lacks what it needs, and that other
// cases are not affected.
func TestLacks(t *testing.T) {
	p := localPair(t)
	p.Endpoint = host.Endpoint{URL: "http://127.0.0.1:1", Namespace: "x",
		Lacks: map[string]string{"namespaces": "somebody may not", "metrics": "nor that"}}
	for text, want := range map[string]bool{"namespace/create": true,
		"namespace/list": true, "configmap/get": false, "floor": false} {
		w := call(t, text)
		w.Window = time.Second
		_, err := runTool(t, New(), p, w)
		if errors.Is(err, result.ErrNotSupported) != want || err == nil ||
			strings.Contains(err.Error(), "somebody may not") != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestObjectiveValues checks that a run counts the requests above the official limit of its workload, including those
// that failed fast, and has no count without a limit.
func TestObjectiveValues(t *testing.T) {
	h := netload.NewHistogram()
	for _, d := range []time.Duration{time.Millisecond, 900 * time.Millisecond, 1100 * time.Millisecond, 5 * time.Second} {
		h.Record(int64(d))
	}
	fast := netload.NewHistogram()
	fast.Record(int64(time.Millisecond))
	for asked, above := range map[string]float64{"configmap/create": 3, "configmap/get": 3,
		"configmap/list": 1, "pod-startup": 1, "floor": -1, "configmap/watch": -1,
		"configmap/create:clients=2": -1, "configmap/create:knee=1s": -1} {
		w := call(t, asked)
		m, err := merge(w, httpload.Result{Report: httpload.Report{Window: 1,
			Planned: 5, Total: httpload.Tally{OK: 4, Latency: h.Encode(), Waited: fast.Encode(),
				Statuses: map[int]uint64{500: 1}}}})
		if err != nil {
			t.Fatal(err)
		}
		run := result.Run{Values: m.Values, Facts: m.Facts}
		v, has := run.Value("slo-above")
		if has != (above >= 0) || has && v.Number != above {
			t.Errorf("%s: %v %t, want %g", asked, v.Number, has, above)
		}
		if n, _ := run.Value("slo-samples"); has && (n.Number != 5 ||
			!strings.Contains(run.Fact("slo"), "99th percentile per cluster-day <=") && asked == "pod-startup") {
			t.Errorf("%s: %v samples, %q", asked, n.Number, run.Fact("slo"))
		}
	}
}
