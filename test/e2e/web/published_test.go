//go:build linux

package web

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/test/e2e"
)

// report writes the results in a format and returns the content of the file.
func (o outcome) report(t *testing.T, format, file string) string {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), e2e.Program(t), "report", o.dir, "--format", format).
		CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(o.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPublished measures the published case with fewer clients. It checks that the mean latency of the closed loop is
// clients over rate, and that the page has a box plot of each metric.
func TestPublished(t *testing.T) {
	s := newServer(t)
	const name, clients = "app/vault/published:clients=100", 100
	o := measure(t, []string{"VAULT_TOKEN=" + token}, "--target", "local:?label=AKS&vault="+s.url, "--target",
		"local:?label=C11n&vault="+s.url,
		"--suite", "app:vault-published", "--case", name, "--primary", name, "--blocks", "2")
	o.expectCases(t, name)
	o.checkNoSecret(t, token)
	s.nothingLeft(t)
	for _, r := range o.runs {
		if !r.Valid() {
			continue
		}
		get := func(metric string) float64 { v, _ := r.Value(metric); return v.Number }
		if !(0 < get("min") && get("min") < get("mean") && get("mean") < get("max") && get("p99") <= get("max")) {
			t.Errorf("min %v, mean %v, p99 %v, max %v", get("min"), get("mean"), get("p99"), get("max"))
		}
		// Requests in flight at the end are counted whole, so the product may exceed the clients by the last latencies.
		if busy := get("rate") * get("mean"); busy < 0.9*clients || busy > clients*(1+2*get("max")/r.Window) {
			t.Errorf("%v requests per second of %v s are %.1f under way, not %d", get("rate"), get("mean"), busy, clients)
		}
		if r.Fact("loop") != "closed" || r.Fact("concurrency") != strconv.Itoa(clients) || r.Fact("vault.published") == "" {
			t.Errorf("%v", r.Facts)
		}
	}
	page := o.report(t, "html", "report.html")
	for _, metric := range []string{"mean", "p99", "max", "min"} {
		if !strings.Contains(page, "Every run of "+name+" by block, "+metric) {
			t.Errorf("no figure of %s", metric)
		}
	}
}

// TestKnee checks that the search for the knee ends at a rate that passed, below one that failed, and every trial is
// reported.
func TestKnee(t *testing.T) {
	s := newServer(t)
	const name, limit = "app/vault/mix:knee=100ms", 0.1
	o := measure(t, []string{"VAULT_TOKEN=" + token}, "--target", "local:?vault="+s.url, "--suite", "app:vault", "--case",
		name, "--duration", "2s")
	r := o.expectCases(t, name)[name]
	s.nothingLeft(t)
	rate, _ := r.Value("rate")
	trial := regexp.MustCompile(`^([0-9.]+)/s: p99 (\S+) s, (\d+) of (\d+) failed$`)
	passed, trials := 0.0, 0
	for _, f := range r.Facts {
		if !strings.HasPrefix(f.Name, "trial.") {
			continue
		}
		m := trial.FindStringSubmatch(f.Value)
		if m == nil {
			t.Fatalf("%q names no trial", f.Value)
		}
		trials++
		at, _ := strconv.ParseFloat(m[1], 64)
		if p99, _ := strconv.ParseFloat(m[2], 64); p99 <= limit && m[3] == "0" {
			passed = max(passed, at)
		}
	}
	if offered, _ := r.Value("offered"); trials < 2 || passed == 0 || offered.Number > passed*1.01 ||
		rate.Number > passed*1.01 {
		t.Errorf("%d trials, of which the highest that passed was %v/s; %v/s were measured, %v asked; %v", trials, passed,
			rate.Number, offered.Number, r.Facts)
	}
	if p99, is := r.Value("p99"); is && p99.Number > limit && r.Fact("generator.limited") == "no" {
		t.Errorf("the rate that was found has a p99 of %v s", p99.Number)
	}
	if limited := r.Fact("generator.limited"); limited != "no" && !strings.HasPrefix(limited, "yes") {
		t.Errorf("whether the generator was the limit is %q", limited)
	}
}
