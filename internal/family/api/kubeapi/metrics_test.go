package kubeapi

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/host"
)

const someMetrics = `# HELP apiserver_request_sli_duration_seconds [ALPHA] Response latency distribution
# TYPE apiserver_request_sli_duration_seconds histogram
apiserver_request_sli_duration_seconds_bucket{component="apiserver",dry_run="",group="",resource="configmaps",` +
	`scope="resource",subresource="",verb="POST",version="v1",le="0.05"} 8
apiserver_request_sli_duration_seconds_bucket{component="apiserver",resource="configmaps",subresource="",` +
	`verb="POST",le="0.1"} 9
apiserver_request_sli_duration_seconds_bucket{component="apiserver",resource="configmaps",subresource="",` +
	`verb="POST",le="+Inf"} 10
apiserver_request_sli_duration_seconds_sum{resource="configmaps",subresource="",verb="POST"} 0.7
apiserver_request_sli_duration_seconds_count{resource="configmaps",subresource="",verb="POST"} 10
apiserver_request_sli_duration_seconds_bucket{resource="pods",subresource="",verb="POST",le="0.05"} 1000
apiserver_request_sli_duration_seconds_bucket{resource="configmaps",subresource="",verb="PUT",le="0.05"} 1000
apiserver_request_sli_duration_seconds_bucket{resource="config\"maps\\",subresource="",verb="POST",le="0.05"} 1000
apiserver_request_duration_seconds_count{resource="configmaps",subresource="",verb="POST"} 11
process_start_time_seconds 1.7e+09
etcd_nonsense {
`

func parsed(t *testing.T, text string) scrape {
	t.Helper()
	s, err := parseMetrics(strings.NewReader(text), series{"POST", "configmaps", ""})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMetrics(t *testing.T) {
	s := parsed(t, someMetrics)
	if s.start != 1.7e9 || s.sli.n != 10 || s.sli.sum != 0.7 ||
		s.sli.buckets[0.05] != 8 || s.sli.buckets[math.Inf(1)] != 10 || s.whole.n != 11 {
		t.Errorf("%+v", s)
	}
	if low, high, ok := s.sli.quantile(0.5); !ok || low != 0 || high != 0.05 {
		t.Errorf("p50 in (%g, %g] %v", low, high, ok)
	}
	if low, high, ok := s.sli.quantile(0.99); !ok || low != 0.1 || !math.IsInf(high, 1) {
		t.Errorf("p99 in (%g, %g] %v", low, high, ok)
	}
	if _, _, ok := (histogram{}).quantile(0.99); ok {
		t.Error("a quantile of nothing")
	}
}

// TestMetricsDelta checks that the difference of two scrapes is an error if another replica answered, or if counters
// decreased.
func TestMetricsDelta(t *testing.T) {
	before := parsed(t, someMetrics)
	more := strings.NewReplacer(`"0.05"} 8`, `"0.05"} 18`, `"0.1"} 9`, `"0.1"} 19`,
		`"+Inf"} 10`, `"+Inf"} 20`, `"POST"} 10`, `"POST"} 20`).Replace(someMetrics)
	sli, whole, err := parsed(t, more).since(before)
	if err != nil || sli.n != 10 || sli.buckets[0.05] != 10 || whole.n != 0 {
		t.Errorf("%+v, %+v, %v", sli, whole, err)
	}
	other := strings.Replace(more, "1.7e+09", "1.8e+09", 1)
	if _, _, err := parsed(t, other).since(before); !errors.Is(err, errMetrics) ||
		!strings.Contains(err.Error(), "several replicas") {
		t.Errorf("another replica: %v", err)
	}
	if _, _, err := before.since(parsed(t, more)); !errors.Is(err, errMetrics) ||
		!strings.Contains(err.Error(), "gone back") {
		t.Errorf("counters that went back: %v", err)
	}
	less := strings.Replace(more, `"0.05"} 18`, `"0.05"} 7`, 1)
	if _, _, err := parsed(t, less).since(before); !errors.Is(err, errMetrics) {
		t.Errorf("a bucket that went back: %v", err)
	}
}

func TestMetricsErrors(t *testing.T) {
	for _, text := range []string{"", "process_start_time_seconds", "process_start_time_seconds x",
		"process_start_time_seconds NaN", "apiserver_request_sli_duration_seconds_sum{a=\"b 1",
		"apiserver_request_sli_duration_seconds_sum{a} 1", "apiserver_request_sli_duration_seconds_sum{} "} {
		if _, err := parseMetrics(strings.NewReader(text), series{}); !errors.Is(err, errMetrics) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSeries(t *testing.T) {
	for text, want := range map[string]series{
		"configmap/create": {"POST", "configmaps", ""}, "pod/list:objects=100": {"LIST", "pods", ""},
		"deployment/scale": {"PATCH", "deployments", "scale"}, "namespace/update": {"PUT", "namespaces", ""},
		"floor": {}, "pod-startup": {}, "configmap/watch": {},
	} {
		w := call(t, host.Endpoint{}, text)
		if got, counted := seriesOf(w.Workload.Call); got != want || counted != (want != series{}) {
			t.Errorf("%s: %+v %v", text, got, counted)
		}
	}
}

func FuzzMetrics(f *testing.F) {
	f.Add(someMetrics)
	f.Add("apiserver_request_sli_duration_seconds_bucket{le=\"\\\"} 1\nprocess_start_time_seconds 1")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseMetrics(strings.NewReader(text), series{"POST", "configmaps", ""})
		if err != nil {
			if !errors.Is(err, errMetrics) {
				t.Fatal(err)
			}
			return
		}
		s.sli.quantile(0.99)
		if _, _, err := s.since(s); err != nil {
			t.Errorf("nothing went back, but %v", err)
		}
	})
}
