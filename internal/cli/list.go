package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/report"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/workload"
)

func newList(s Streams) *cobra.Command {
	c := &cobra.Command{
		Use:       "list targets|cases|tools|formats|reference",
		Short:     "Show what there is",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"targets", "cases", "tools", "formats", "reference"},
		RunE: func(_ *cobra.Command, args []string) error {
			w := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
			switch args[0] {
			case "targets":
				listTargets(w)
			case "cases":
				listCases(w)
			case "tools":
				listTools(w)
			case "formats":
				for _, f := range report.Formats() {
					fmt.Fprintf(w, "%s\t%s\t%s\n", f.Name, f.File, f.About)
				}
				listImports(w)
			case "reference":
				listReference(w)
			}
			return w.Flush()
		},
	}
	return c
}

func listTargets(w *tabwriter.Writer) {
	for _, k := range registry.Kinds() {
		for _, line := range k.Targets {
			fmt.Fprintf(w, "%s\t%s\n", line.Spec, line.About)
		}
		fmt.Fprintf(w, "\noptions of %s: (after the name, as in %s)\n", k.Name, k.Example)
		for _, o := range k.Options {
			if o.Refused == nil {
				fmt.Fprintf(w, "  %s\t%s\n", o, o.About())
			}
		}
	}
}

func listCases(w *tabwriter.Writer) {
	for i, suite := range registry.Suites() {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %s\n", suite.Name, suite.About)
		for _, c := range suite.Cases {
			role := string(c.Role)
			if c.Role == result.Bound {
				role = "upper bound"
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\n", c.Name(), role, c.Workload.Metric())
		}
	}
	for _, f := range registry.SuiteFiles() {
		fmt.Fprintf(w, "\n%s:FILE: %s\n", f.Name, f.About)
	}
}

func listTools(w *tabwriter.Writer) {
	for _, t := range registry.Tools() {
		var kinds string
		for _, k := range workload.Kinds() {
			spec, err := workload.Spec{Kind: k, Rate: rateFor(k)}.Resolved()
			if err == nil && t.Supports(spec) == nil {
				kinds += " " + string(k)
			}
		}
		if job, err := workload.ParseIO("randread-4k-qd1", ""); err == nil && t.Supports(job) == nil {
			kinds += " storage"
		}
		if call, err := workload.ParseCall("configmap/get"); err == nil && t.Supports(call) == nil {
			kinds += " api"
		}
		if app, err := (workload.Spec{Kind: workload.Vault, App: workload.App{Name: "published"}}).Resolved(); err == nil && t.Supports(app) == nil {
			kinds += " app"
		}
		fmt.Fprintf(w, "%s\t%s\n", t.Name(), kinds[min(1, len(kinds)):])
	}
}

// rateFor is a rate that every tool that knows the workload at all supports.
func rateFor(k workload.Kind) float64 {
	if k == workload.UDPStream {
		return 1000
	}
	return 0
}
