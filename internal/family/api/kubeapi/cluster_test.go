package kubeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/apiserver"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/api"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/httpload"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/test/e2e"
)

// realServer returns the endpoint of a real API server with a namespace for this test: that of a cluster of
// test/cluster, whose kubeconfig is JSON and whose nodes have the agent's image.
func realServer(t *testing.T) host.Endpoint {
	t.Helper()
	file := e2e.Kubeconfig(t)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server string `json:"server"`
				CA     []byte `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Cert []byte `json:"client-certificate-data"`
				Key  []byte `json:"client-key-data"`
			} `json:"user"`
		} `json:"users"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	c, u := config.Clusters[0].Cluster, config.Users[0].User
	image := os.Getenv("KNOTMETER_E2E_IMAGE")
	if image == "" {
		image = "knotmeter.local/agent:1"
	}
	e := host.Endpoint{URL: c.Server, CA: c.CA, Image: image, Secret: host.Secret{Cert: u.Cert, Key: u.Key}}
	e.Namespace = namespaceFor(t, e)
	return e
}

func namespaceFor(t *testing.T, e host.Endpoint) string {
	t.Helper()
	c, err := apiserver.Connect(e)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("test-api-%d", time.Now().UnixNano())
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)
	if _, err := c.Do(t.Context(), "POST", "/api/v1/namespaces", "application/json", []byte(body)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := c.Do(context.WithoutCancel(t.Context()), "DELETE", "/api/v1/namespaces/"+name, "", nil); err != nil {
			t.Error(err)
		}
	})
	return name
}

// call returns a short run of a workload.
func call(t *testing.T, e host.Endpoint, text string) api.Run {
	t.Helper()
	w, err := api.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	times := family.Times{Warmup: 200 * time.Millisecond, Window: 500 * time.Millisecond}
	if strings.HasPrefix(text, "pod-") {
		times = family.Times{Window: 3 * time.Second}
	}
	return api.Run{Endpoint: e, Workload: w, Times: times}
}

// TestEveryCall checks that on a real API server every case has all its requests answered, and leaves nothing.
func TestEveryCall(t *testing.T) {
	e := realServer(t)
	cases := api.VerbsWithoutResource()
	for _, r := range api.Resources() {
		for _, v := range api.Verbs(r) {
			text := r + "/" + v
			if r == "namespace" {
				text += ":rate=5" // controllers take their time to remove namespaces
			}
			cases = append(cases, text)
		}
	}
	cases = append(cases, "configmap/list:objects=100", "configmap/list:objects=100,consistent=true",
		"configmap/get:clients=2", "configmap/get:knee=1s")
	for _, text := range cases {
		t.Run(text, func(t *testing.T) {
			w := call(t, e, text)
			r, err := Run(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			// Events may come late on a busy machine; the run counts them as failures, and the test accepts them.
			late := uint64(0)
			if w.Workload.Call.Verb == "watch" || strings.HasPrefix(w.Workload.Call.Verb, "pod-") {
				late = r.Total.Errors[httpload.TimedOut]
			}
			if r.Total.OK == 0 || r.Total.Failed() > late || len(r.Invalid) > 0 {
				t.Errorf("%+v", r)
			}
			h, err := netload.DecodeHistogram(r.Total.Latency)
			if err != nil || w.Workload.Knee == 0 && h.Count() != int64(r.Total.OK) {
				t.Errorf("%d latencies of %d, %v", h.Count(), r.Total.OK, err)
			}
			nothingLeft(t, e)
		})
	}
}

// nothingLeft checks that no object of a run is left in the test's namespace, and no namespace of a run.
func nothingLeft(t *testing.T, e host.Endpoint) {
	t.Helper()
	c, err := apiserver.Connect(e)
	if err != nil {
		t.Fatal(err)
	}
	ours := "?labelSelector=" + apiserver.LabelRun
	paths := []string{"/api/v1/namespaces" + ours}
	for _, plural := range []string{"/api/v1/namespaces/%s/configmaps", "/api/v1/namespaces/%s/services",
		"/api/v1/namespaces/%s/pods", "/apis/apps/v1/namespaces/%s/deployments"} {
		paths = append(paths, fmt.Sprintf(plural, e.Namespace)+ours)
	}
	for _, path := range paths {
		text, err := c.DoWithRetry(t.Context(), "GET", path, nil)
		var items struct {
			Items []struct{ Metadata struct{ Name string } }
		}
		if err != nil || json.Unmarshal(text, &items) != nil || len(items.Items) > 0 {
			t.Errorf("left: %+v, %v", items, err)
		}
	}
}
