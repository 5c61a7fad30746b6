package kubeapi

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/api"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/metric"
)

// A kubelet is a model whose watches show every object as soon as it exists, with the same status.
type kubelet struct {
	model
	status string
}

func (k *kubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") == "" {
		k.model.ServeHTTP(w, r)
		return
	}
	for shown := map[string]bool{}; r.Context().Err() == nil; time.Sleep(time.Millisecond) {
		for _, path := range k.paths() {
			if name, is := strings.CutPrefix(path, r.URL.Path+"/"); is && !shown[name] {
				shown[name] = true
				fmt.Fprintf(w, `{"type":"MODIFIED","object":{"metadata":{"name":%q},"status":%s}}`+"\n", name, k.status)
			}
		}
		w.(http.Flusher).Flush()
	}
}

func (k *kubelet) paths() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Keys(k.objects))
}

func (k *kubelet) serve(t *testing.T) host.Endpoint {
	t.Helper()
	k.objects = map[string][]byte{}
	server := httptest.NewServer(k)
	t.Cleanup(server.Close)
	return host.Endpoint{URL: server.URL, Namespace: "x", Node: "one"}
}

const running = `{"containerStatuses":[{"state":{"running":{}}}],"conditions":[{"type":"PodScheduled","status":"True"},
	{"type":"Initialized","status":"True"},{"type":"ContainersReady","status":"True"},{"type":"Ready","status":"True"}]}`

// TestStartup checks that a run of pod-startup reports the phases of a start, and how many pods became ready per
// minute.
func TestStartup(t *testing.T) {
	k := &kubelet{status: strings.ReplaceAll(running, "\n", "")}
	w, err := api.Parse("pod-startup:rate=20")
	if err != nil {
		t.Fatal(err)
	}
	times := family.Times{Window: 500 * time.Millisecond}
	r, err := Run(t.Context(), api.Run{Endpoint: k.serve(t), Workload: w, Times: times})
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, d := range r.Distributions {
		parts = append(parts, d.Name+"-")
	}
	if want := w.HTTPTraits().Parts; !slices.Equal(parts, want) || len(r.Invalid) > 0 {
		t.Errorf("%v and not %v, %v", parts, want, r.Invalid)
	}
	if n := r.Values[metric.PodsPerMinute]; r.Total.OK != 10 || !(n > 0) {
		t.Errorf("%d pods, %g a minute", r.Total.OK, n)
	}
}

// TestReplicas checks that Deployments with replicas have pods that start on the client's node, that they exist before
// the first call, and that each call changes their number.
func TestReplicas(t *testing.T) {
	var numbers []string
	available := 0 // one more for each list
	s := &model{}
	s.answer = func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method == http.MethodPatch:
			text, _ := io.ReadAll(r.Body)
			numbers = append(numbers, string(text))
			fmt.Fprint(w, "{}")
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/deployments") && len(s.objects) > 0 &&
			len(numbers) == 0:
			for path, text := range s.objects {
				if !strings.Contains(string(text), `"replicas":2`) ||
					!strings.Contains(string(text), `"kubernetes.io/hostname":"one"`) {
					t.Errorf("%s: %s", path, text)
				}
			}
			items := strings.Repeat(fmt.Sprintf(`,{"status":{"availableReplicas":%d}}`, available), len(s.objects))
			fmt.Fprintf(w, `{"items":[%s]}`, items[1:])
			available++
		default:
			return false
		}
		return true
	}
	e := s.serve(t)
	e.Node = "one"
	w, err := api.Parse("deployment/scale:replicas=2,rate=20")
	if err != nil {
		t.Fatal(err)
	}
	times := family.Times{Window: 500 * time.Millisecond}
	r, err := Run(t.Context(), api.Run{Endpoint: e, Workload: w, Times: times})
	if err != nil || r.Total.OK != 10 || r.Facts["api.objects"] != "4" || available != 3 {
		t.Errorf("%+v, %d looks, %v", r, available, err)
	}
	for i, got := range numbers {
		if want := fmt.Sprintf(`{"spec":{"replicas":%d}}`, 1+i/4%2); got != want {
			t.Errorf("call %d is %s, and not %s", i, got, want)
		}
	}
}

// TestThroughput checks that the time of a throughput is from the first request until the last pod is ready, whatever
// their order.
func TestThroughput(t *testing.T) {
	var rate throughput
	began := time.Now()
	rate.add(began.Add(2*time.Second), 3*time.Second)
	rate.add(began, 30*time.Second)
	rate.add(began.Add(time.Second), time.Second)
	if n := rate.perMinute(); n != 6 {
		t.Errorf("%g a minute", n)
	}
}
