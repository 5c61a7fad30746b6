package web

import (
	"slices"
	"strings"
	"testing"
)

// TestMetrics checks that a workload has the metric of its verdict and those of its kinds of request, each once.
func TestMetrics(t *testing.T) {
	mix := "url: http://a\nrequests:\n- {name: read, path: /}\n- {name: write, path: /}\n"
	for _, test := range []struct {
		w           plannedRun
		has, hasNot string
	}{
		{call(t, "configmap/get"), "p99.9 slo-above connect-mean", "request-p50 get-p50"},
		{call(t, "configmap/watch"), "request-p50", "slo-above"},
		{call(t, "pod-startup"), "request-p99 created-p50 scheduled-p50 initialized-p50 started-p99 " +
			"containers-ready-p50 pods-per-minute slo-limit", "ready-p50"},
		{call(t, "floor"), "p50 failed", "slo-limit"},
		{application(t, "vault/mix", ""), "encrypt-p50 verify-failed sign-rate", ""},
		{application(t, "vault/published", ""), "mean decrypt-p99", ""},
		{application(t, "vault/sign", ""), "p50", "sign-p50 clients"},
		{application(t, "vault/sign:clients=1-8", ""), "rate clients", ""},
		{application(t, "http/shop", mix), "read-p50 write-rate", ""},
	} {
		var names []string
		for _, m := range New().Metrics(test.w.workload) {
			if slices.Contains(names, m.Name) || m.Unit == "" {
				t.Errorf("%s: %+v is there twice or has no unit", test.w, m)
			}
			names = append(names, m.Name)
		}
		for _, name := range append(strings.Fields(test.has), test.w.Traits().Metric) {
			if !slices.Contains(names, name) {
				t.Errorf("%s has no %s", test.w, name)
			}
		}
		for _, name := range strings.Fields(test.hasNot) {
			if slices.Contains(names, name) {
				t.Errorf("%s has %s", test.w, name)
			}
		}
	}
}
