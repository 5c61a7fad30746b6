package kubeapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/apiserver"
	"github.com/knotmeter/knotmeter/internal/family/api"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/httpload"
	"github.com/knotmeter/knotmeter/internal/load/netload"
)

// A model is a model of an API server that stores objects by their paths and records the requests.
type model struct {
	mu      sync.Mutex
	objects map[string][]byte
	asked   []string                                          // method and path of each request
	header  http.Header                                       // of the last request
	answer  func(w http.ResponseWriter, r *http.Request) bool // if set, reports whether it has answered
}

func (s *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.header = append(s.asked, r.Method+" "+r.URL.Path), r.Header.Clone()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Kubernetes-Pf-Prioritylevel-Uid", "1234")
	if s.answer != nil && s.answer(w, r) {
		return
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/version"):
		fmt.Fprint(w, `{"gitVersion":"v1.99.0"}`)
	case strings.HasSuffix(r.URL.Path, "/metrics"):
		w.WriteHeader(http.StatusForbidden)
	default:
		s.keep(w, r)
	}
}

func (s *model) keep(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		var o struct{ Metadata struct{ Name string } }
		text := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(text)
		_ = json.Unmarshal(text, &o)
		s.objects[r.URL.Path+"/"+o.Metadata.Name] = text
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(text)
	case http.MethodDelete:
		for path := range s.objects {
			if path == r.URL.Path || strings.HasPrefix(path, r.URL.Path+"/") {
				delete(s.objects, path)
			}
		}
		fmt.Fprint(w, "{}")
	default:
		if text, is := s.objects[r.URL.Path]; is {
			_, _ = w.Write(text)
			return
		}
		var items []json.RawMessage
		for path, text := range s.objects {
			if strings.HasPrefix(path, r.URL.Path+"/") {
				items = append(items, text)
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]string{"resourceVersion": "1"}, "items": items})
	}
}

func (s *model) serve(t *testing.T) host.Endpoint {
	t.Helper()
	s.objects = map[string][]byte{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return host.Endpoint{URL: server.URL, Namespace: "x"}
}

// TestBehindAPath checks that a run works behind a path prefix, as proxies of several clusters have it, with the header
// fields of the kubeconfig, that its objects have the given labels, that its priority has a name, and that nothing is
// left.
func TestBehindAPath(t *testing.T) {
	s := &model{}
	e := s.serve(t)
	e.URL += "/k8s/clusters/c-1/"
	e.Secret.Header = map[string][]string{"Authorization": {"Bearer abc"}, "Impersonate-Group": {"a", "b"}}
	e.Labels, e.Names = map[string]string{"knotmeter.dev/experiment": "e1"}, map[string]string{"1234": "workload-low"}
	labelled := false
	s.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/k8s/clusters/c-1/") {
			t.Errorf("asked for %s", r.URL.Path)
		}
		for _, o := range s.objects {
			labelled = labelled || strings.Contains(string(o), `"knotmeter.dev/experiment":"e1"`)
		}
		return false
	}
	r, err := Run(t.Context(), call(t, e, "configmap/get"))
	if err != nil || r.Total.OK == 0 || r.Total.Failed() > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if s.header.Get("Authorization") != "Bearer abc" || len(s.header.Values("Impersonate-Group")) != 2 {
		t.Errorf("header %v", s.header)
	}
	if r.Facts["api.priority-level"] != "workload-low" || r.Facts["api.version"] != "v1.99.0" ||
		!strings.Contains(r.Facts["server"], "may not be read: GET /metrics has status 403") {
		t.Errorf("%v", r.Facts)
	}
	if !labelled || len(s.objects) > 0 {
		t.Errorf("labelled %t, left %v", labelled, s.objects)
	}
}

// TestDistress checks that a run stops early if the server refuses most requests.
func TestDistress(t *testing.T) {
	s := &model{}
	e := s.serve(t)
	s.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if _, is := s.objects[r.URL.Path]; is && r.Method == http.MethodGet {
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}
		return false
	}
	w := call(t, e, "configmap/get:rate=100")
	w.Times.Window = 10 * time.Minute
	began := time.Now()
	r, err := Run(t.Context(), w)
	if err != nil || !strings.Contains(r.Stopped, "in distress") || time.Since(began) > w.Times.Window {
		t.Errorf("stopped %q after %v, %v", r.Stopped, time.Since(began), err)
	}
}

// TestLimits checks that a run that would create too much is refused before it creates anything.
func TestLimits(t *testing.T) {
	for text, want := range map[string]string{
		"configmap/create:rate=10000": "5000 is the most",
		"configmap/delete:rate=10000": "5000 is the most", "pod-startup:rate=20": "60 is the most",
		"configmap/delete:clients=2": "give it a rate", "deployment/create:replicas=6": "pods, and 60 is the most",
	} {
		s := &model{}
		e := s.serve(t)
		w := call(t, e, text)
		w.Times.Window = 10 * time.Second
		if _, err := Run(t.Context(), w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
		if len(s.objects) > 0 {
			t.Errorf("%s: made %v", text, s.objects)
		}
	}
	s := &model{}
	e := s.serve(t)
	e.Namespace = ""
	if _, err := Run(t.Context(), call(t, e, "configmap/get")); !errors.Is(err, apiserver.ErrEndpoint) {
		t.Errorf("without a namespace: %v", err)
	}
}

// TestRemoveWaits checks that the removal of a run's objects retries while the server is unavailable.
func TestRemoveWaits(t *testing.T) {
	s := &model{}
	e := s.serve(t)
	gone, failed := false, 0
	s.answer = func(w http.ResponseWriter, r *http.Request) bool {
		gone = gone || r.Method == http.MethodDelete
		if gone && failed < 3 {
			failed++
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	}
	if _, err := Run(t.Context(), call(t, e, "configmap/get")); err != nil || failed < 3 || len(s.objects) > 0 {
		t.Errorf("%v after %d failures, left %d", err, failed, len(s.objects))
	}
}

// TestRemoveSettles checks that a pod that a controller creates for a deployment that is already gone is removed too.
func TestRemoveSettles(t *testing.T) {
	s := &model{}
	e := s.serve(t)
	const pods = "/api/v1/namespaces/x/pods"
	deleted, lists := false, 0
	s.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		deleted = deleted || r.Method == http.MethodDelete
		if deleted && r.Method == http.MethodGet && r.URL.Path == pods {
			if lists++; lists == 3 { // the deployment still existed at the first, and nothing at the second
				s.objects[pods+"/late"] = []byte(`{"metadata":{"name":"late"}}`)
			}
		}
		return false
	}
	_, err := Run(t.Context(), call(t, e, "deployment/get"))
	if err != nil || !slices.Contains(s.asked, "DELETE "+pods+"/late") || len(s.objects) > 0 {
		t.Errorf("%v, left %d of %v", err, len(s.objects), s.asked[len(s.asked)-5:])
	}
}

// TestUpdated checks that an update has no version of the object, so that it never conflicts.
func TestUpdated(t *testing.T) {
	before, after, err := updateTemplate([]byte(
		`{"metadata":{"name":"x","resourceVersion":"7","managedFields":[{}]},"data":{"key":"y"},"status":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	whole := string(before) + "42" + string(after)
	if !json.Valid([]byte(whole)) || strings.Contains(whole, "resourceVersion") ||
		strings.Contains(whole, "managedFields") || !strings.Contains(whole, `"knotmeter.dev/n":"42"`) {
		t.Error(whole)
	}
	for _, text := range []string{"", "[]", "{}", `{"metadata":3}`} {
		if _, _, err := updateTemplate([]byte(text)); err == nil {
			t.Errorf("%q can be changed", text)
		}
	}
}

// TestMissingEvents checks that missing events and refused requests are failures with their waits, and make no event
// look faster.
func TestMissingEvents(t *testing.T) {
	histogram := func(n int, d time.Duration) *netload.Histogram {
		h := netload.NewHistogram()
		for range n {
			h.Record(int64(d))
		}
		return h
	}
	refused := histogram(1, time.Millisecond).Encode()
	r := &run{}
	r.result.Total = httpload.Tally{OK: 10, Statuses: map[int]uint64{429: 1}, Waited: refused}
	if err := r.setLatency(histogram(8, 10*time.Millisecond), histogram(2, 20*time.Second)); err != nil {
		t.Fatal(err)
	}
	total := r.result.Total
	h, err := total.Histogram()
	if err != nil || total.OK != 8 || total.Errors[httpload.TimedOut] != 2 || total.Failed() != 3 ||
		h.Count() != 11 || h.Min() < 0.00999 || h.Max() < 20 {
		t.Errorf("%+v: %d latencies from %g to %g s, %v", total, h.Count(), h.Min(), h.Max(), err)
	}
}

// TestPodMarks checks that pods and pod templates, and no other objects, have the labels and annotations that keep
// meshes out, the cluster's security context, and the image with its pull policy.
func TestPodMarks(t *testing.T) {
	for name, want := range map[string]int{"pod": 1, "deployment": 1, "configmap": 0} {
		o := apiserver.RunObjects{
			Kind: apiserver.KindOf(name), Run: "abc",
			PodLabels: map[string]string{"mesh": "none"}, PodAnnotations: map[string]string{"proxy": "disabled"},
			Pod:   map[string]any{"securityContext": map[string]any{"runAsNonRoot": true}},
			Image: "agent:1", PullPolicy: "Never",
		}
		text := string(o.Object(1, body(o, api.Call{}, "")))
		marks := []int{strings.Count(text, `"mesh":"none"`), strings.Count(text, `"proxy":"disabled"`),
			strings.Count(text, `"image":"agent:1","imagePullPolicy":"Never"`)}
		if !slices.Equal(marks, []int{want, want, want}) || strings.Contains(text, "runAsUser") {
			t.Errorf("%s: %s", name, text)
		}
		const selector = `"matchLabels":{"app.kubernetes.io/managed-by":"knotmeter","knotmeter.dev/run":"abc"}`
		if name == "deployment" && !strings.Contains(text, selector) {
			t.Errorf("the selector is not that of the run alone: %s", text)
		}
	}
}
