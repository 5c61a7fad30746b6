package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/importer"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/reference"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/report"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/tool"
	"github.com/knotmeter/knotmeter/internal/workload"
)

func newList(s Streams) *cobra.Command {
	c := &cobra.Command{
		Use:       "list targets|cases|tools|formats|reference",
		Short:     "List targets, cases, tools, formats and references",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"targets", "cases", "tools", "formats", "reference"},
		RunE: func(_ *cobra.Command, args []string) error {
			_, err := io.WriteString(s.Out, prose.List(listed(args[0])))
			return err
		},
	}
	return c
}

// listed is what there is of one of the arguments of list.
func listed(what string) []prose.Section {
	switch what {
	case "targets":
		return listedTargets()
	case "cases":
		return listedCases()
	case "tools":
		return listedTools()
	case "formats":
		return listedFormats()
	}
	return listedReference()
}

func listedTargets() []prose.Section {
	var list []prose.Section
	for _, k := range registry.Kinds() {
		var targets prose.Section
		options := prose.Section{Heading: fmt.Sprintf("options of %s: (after the name, as in %s)", k.Name, k.Example)}
		for _, line := range k.Targets {
			targets.Rows = append(targets.Rows, []string{line.Spec, line.About})
		}
		for _, o := range k.Options {
			if o.Refused == nil {
				options.Rows = append(options.Rows, []string{o.String(), o.About()})
			}
		}
		list = append(list, targets, options)
	}
	return list
}

func listedCases() []prose.Section {
	var list []prose.Section
	for _, suite := range registry.Suites() {
		s := prose.Section{Heading: suite.Name + ": " + suite.About}
		for _, c := range suite.Cases {
			role := string(c.Role)
			if c.Role == result.Bound {
				role = "upper bound"
			}
			s.Rows = append(s.Rows, []string{c.Name(), role, c.Workload.Metric()})
		}
		list = append(list, s)
	}
	for _, f := range registry.SuiteFiles() {
		list = append(list, prose.Section{Heading: f.Name + ":FILE: " + f.About})
	}
	return list
}

func listedTools() []prose.Section {
	var s prose.Section
	for _, t := range registry.Tools() {
		s.Rows = append(s.Rows, []string{t.Name(), strings.Join(carriedOut(t), " ")})
	}
	return []prose.Section{s}
}

// carriedOut are the kinds of workloads that a tool supports.
func carriedOut(t tool.Tool) []string {
	var kinds []string
	for _, k := range workload.Kinds() {
		spec, err := workload.Spec{Kind: k, Rate: rateFor(k)}.Resolved()
		if err == nil && t.Supports(spec) == nil {
			kinds = append(kinds, string(k))
		}
	}
	if job, err := workload.ParseIO("randread-4k-qd1", ""); err == nil && t.Supports(job) == nil {
		kinds = append(kinds, "storage")
	}
	if call, err := workload.ParseCall("configmap/get"); err == nil && t.Supports(call) == nil {
		kinds = append(kinds, "api")
	}
	published := workload.Spec{Kind: workload.Vault, App: workload.App{Name: "published"}}
	if app, err := published.Resolved(); err == nil && t.Supports(app) == nil {
		kinds = append(kinds, "app")
	}
	return kinds
}

func listedFormats() []prose.Section {
	var written prose.Section
	read := prose.Section{Heading: "that import reads:"}
	for _, f := range report.Formats() {
		written.Rows = append(written.Rows, []string{f.Name, f.File, f.About})
	}
	for _, f := range importer.Formats() {
		read.Rows = append(read.Rows, []string{f.Name, f.About})
	}
	return []prose.Section{written, read}
}

func listedReference() []prose.Section {
	var list []prose.Section
	for _, t := range reference.All() {
		about := prose.Section{Heading: t.Name + ": " + t.Title, Rows: [][]string{
			{"source", t.Publisher}, {"page", t.URL}, {"date", t.Date}, {"machines", t.Machines}, {"method", t.Method},
			{"runs", t.Runs}, {"targets", strings.Join(t.Targets, ", ")},
		}}
		cases := prose.Section{Heading: "cases of " + t.Name + ":"}
		for _, r := range t.Rows {
			cases.Rows = append(cases.Rows, []string{r.Case, r.Metric + ", " + r.Statistic})
		}
		list = append(list, about, cases)
	}
	return list
}

// rateFor is a rate that every tool that knows the workload at all supports.
func rateFor(k workload.Kind) float64 {
	if k == workload.UDPStream {
		return 1000
	}
	return 0
}
