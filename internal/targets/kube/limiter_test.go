package kube

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/knotmeter/knotmeter/internal/family"
	calls "github.com/knotmeter/knotmeter/internal/family/api"
	"github.com/knotmeter/knotmeter/internal/family/api/kubeapi"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
)

// slowServer returns the URL of an API server that answers every request after the same latency.
func slowServer(t *testing.T, latency time.Duration) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(latency)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x"},"gitVersion":"v1.0.0"}`))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// measureLatencies returns the sorted latencies in seconds of requests sent as K-Bench does: several goroutines share a
// client, and each waits for its answer. It omits the burst that the limiter lets through.
func measureLatencies(t *testing.T, config *rest.Config, atOnce, each int) []float64 {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all []float64
	var group sync.WaitGroup
	for range atOnce {
		group.Go(func() {
			for n := range each {
				began := time.Now()
				if _, err := c.CoreV1().ConfigMaps("x").Get(context.Background(), "x", metav1.GetOptions{}); err != nil {
					t.Error(err)
				}
				mu.Lock()
				if n*atOnce >= rest.DefaultBurst+atOnce {
					all = append(all, time.Since(began).Seconds())
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	slices.Sort(all)
	return all
}

// TestLimiter checks that neither our connections nor our measurements wait for client-go's rate limiter. Published
// latencies of API servers were the waiting time in it: by default it lets 5 requests a second pass, so four goroutines
// that share a client each see 4 × 200 ms, whatever the server needs.
func TestLimiter(t *testing.T) {
	const latency = 5 * time.Millisecond
	url := slowServer(t, latency)
	theirs := measureLatencies(t, &rest.Config{Host: url}, 4, 6)
	const step = 1 / float64(rest.DefaultQPS)
	// The median, because on a busy machine single requests wait for a CPU too.
	median := theirs[len(theirs)/2]
	if off := math.Abs(median/step - math.Round(median/step)); median < 2*step || off > 0.25 {
		t.Errorf("client-go at its default settings took %.3f s in the median, no multiple of %g s", median, step)
	}

	unlimited := &rest.Config{Host: url}
	c, err := cluster.Dial(unlimited)
	if err != nil {
		t.Fatal(err)
	}
	if limiter := c.CoreV1().RESTClient().GetRateLimiter(); limiter != nil && limiter.QPS() > 0 {
		t.Errorf("our own connections to clusters are limited to %g requests a second", limiter.QPS())
	}

	w, err := calls.Parse("floor:clients=4")
	if err != nil {
		t.Fatal(err)
	}
	times := family.Times{Window: 500 * time.Millisecond}
	r, err := kubeapi.Run(t.Context(), calls.Run{Endpoint: host.Endpoint{URL: url}, Workload: w, Times: times})
	if err != nil {
		t.Fatal(err)
	}
	h, err := netload.DecodeHistogram(r.Total.Latency)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the server takes %v; client-go at its default settings sees a median of %.0f ms, we %.1f ms of %d requests",
		latency, 1e3*median, 1e3*h.Quantile(0.5), h.Count())
	// Both run on the same machine with as many clients, so what limits only one of them is not the machine.
	if h.Quantile(0.5) > median/4 || r.Total.OK < 20 {
		t.Errorf("our median is %g s of %d requests, client-go's %g s", h.Quantile(0.5), r.Total.OK, median)
	}
}
