package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"github.com/knotmeter/knotmeter/internal/importer"
	"github.com/knotmeter/knotmeter/internal/reference"
)

// A published is the flag --reference: names of published tables, repeated or separated by commas.
type published []reference.Table

func (p *published) String() string {
	var names []string
	for _, t := range *p {
		names = append(names, t.Name)
	}
	return strings.Join(names, ",")
}

func (p *published) Type() string { return "name" }

func (p *published) Set(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		t, err := reference.Find(strings.TrimSpace(name))
		if err != nil {
			return err
		}
		*p = append(*p, t)
	}
	return nil
}

const referenceHelp = "show a published table next to the results, as of another machine and method; repeated " +
	"('knotmeter list reference')"

// flag adds --reference to a command.
func (p *published) flag(f *pflag.FlagSet) { f.Var(p, "reference", referenceHelp) }

func listReference(w *tabwriter.Writer) {
	for i, t := range reference.All() {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %s\n", t.Name, t.Title)
		fmt.Fprintf(w, "  source\t%s, %s\n", t.Publisher, t.URL)
		fmt.Fprintf(w, "  date\t%s\n", t.Date)
		fmt.Fprintf(w, "  machines\t%s\n", t.Machines)
		fmt.Fprintf(w, "  method\t%s\n", t.Method)
		fmt.Fprintf(w, "  runs\t%s\n", t.Runs)
		fmt.Fprintf(w, "  targets\t%s\n", strings.Join(t.Targets, ", "))
		for _, r := range t.Rows {
			fmt.Fprintf(w, "  %s\t%s, %s\n", r.Case, r.Metric, r.Statistic)
		}
	}
}

// listImports are the formats that import reads.
func listImports(w *tabwriter.Writer) {
	fmt.Fprintln(w, "\nthat import reads:")
	for _, f := range importer.Formats() {
		fmt.Fprintf(w, "  %s\t\t%s\n", f.Name, f.About)
	}
}
