package report

import (
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/result"
)

// TestCallsByResource checks that calls on one resource have a figure with bars for each, and a concluding sentence, in
// page and Markdown.
func TestCallsByResource(t *testing.T) {
	var rows []compare.Row
	var cases []result.Case
	for _, call := range []string{"deployment/create", "deployment/list", "service/get", "service/list"} {
		resource, verb, _ := strings.Cut(call, "/")
		r := latency(row("kube:b", 1, 2, 1, 0.9, 1.1, compare.Different, compare.WorseThan), 100, 200)
		r.Case = "api/" + call
		rows = append(rows, r)
		cases = append(cases, result.Case{Name: r.Case, Path: "api", Workload: call, Metric: "p50", Role: result.Primary,
			Words: result.Words{Subject: "API: " + verb, Quantity: "latency", Group: resource + "s", Member: verb}})
	}
	in := input(rows...)
	in.Experiment.Cases = cases
	in.Comparison.Subjects = []compare.GroupOutcome{{Name: "deployments", Target: "kube:b", Baseline: "lab:native",
		Sentence: "deployments: kube:b is slower than lab:native in create and list."}}
	var page, markdown strings.Builder
	if err := writeHTML(&page, in); err != nil {
		t.Fatal(err)
	}
	if err := writeMarkdown(&markdown, in); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<h3>deployments <small>p50, lower is better</small></h3>",
		"<h3>services <small>p50, lower is better</small></h3>", "is slower than lab:native in create and list."} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if want := "slower than lab:native in create and list."; !strings.Contains(markdown.String(), want) {
		t.Errorf("%s\nhas no %s", markdown.String(), want)
	}
}
