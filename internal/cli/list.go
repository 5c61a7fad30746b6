package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/importer"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/reference"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/report"
	"github.com/knotmeter/knotmeter/internal/result"
)

func newList(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:       "list targets|cases|tools|formats|reference",
		Short:     "List targets, cases, tools, formats and references",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: slices.Sorted(maps.Keys(lists)),
		RunE: func(_ *cobra.Command, args []string) error {
			_, err := io.WriteString(s.Out, prose.List(lists[args[0]]()))
			return err
		},
	}
}

// lists are what there is of each of the arguments of list.
var lists = map[string]func() []prose.Section{
	"targets": listedTargets, "cases": listedCases, "tools": listedTools, "formats": listedFormats,
	"reference": listedReference,
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
	for _, suite := range registry.Families().Suites() {
		s := prose.Section{Heading: suite.Name + ": " + suite.About}
		for _, c := range suite.Cases {
			role := string(c.Role)
			if c.Role == result.Bound {
				role = "upper bound"
			}
			s.Rows = append(s.Rows, []string{c.Name(), role, c.Workload.Traits().Metric})
		}
		list = append(list, s)
	}
	for _, f := range registry.Families() {
		if f.File != nil {
			list = append(list, prose.Section{Heading: f.Name + ":FILE: " + f.File.About})
		}
	}
	return list
}

func listedTools() []prose.Section {
	var s prose.Section
	for _, t := range registry.Families().Tools() {
		s.Rows = append(s.Rows, []string{t.Name(), strings.Join(carriedOut(t), " ")})
	}
	return []prose.Section{s}
}

// carriedOut are the kinds of workloads that a tool supports.
func carriedOut(t family.Tool) []string {
	var kinds []string
	for _, f := range registry.Families() {
		for _, k := range f.Kinds {
			if t.Supports(k.Workload) == nil {
				kinds = append(kinds, k.Name)
			}
		}
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
