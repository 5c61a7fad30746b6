package registry

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/parameter"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// TestTargetPages checks the pages about kinds of targets; -update writes their tables of options.
func TestTargetPages(t *testing.T) {
	pages := map[string][]string{
		"lab":   {"docs/lab.md"},
		"kube":  {"docs/kubernetes.md", "docs/storage.md", "docs/app.md"},
		"local": {"docs/storage.md", "docs/app.md", "docs/compute.md"},
	}
	for _, k := range Kinds() {
		var shown []string
		var text string
		for _, name := range pages[k.Name] {
			page, options := withOptions(t, name, k)
			golden.Check(t, "../../"+name, page)
			shown, text = append(shown, options...), text+page
		}
		for _, line := range k.Targets {
			// kube:<context> and local:<dir> are named whole, lab:vxlan by its datapath.
			name := strings.TrimPrefix(line.Spec, k.Name+":")
			if !strings.Contains(text, "`"+name+"`") && !strings.Contains(text, "`"+line.Spec+"`") {
				t.Errorf("%v does not name %s", pages[k.Name], line.Spec)
			}
		}
		for _, o := range k.Options {
			if o.Refused == nil && !slices.Contains(shown, o.Name) {
				t.Errorf("%v has no table with the option %s", pages[k.Name], o)
			}
		}
	}
}

// optionTable matches a table of options in a page, after a comment with their names and the kinds of targets.
var optionTable = regexp.MustCompile(`(<!-- options of ([\w ]+): ([^>]+) -->\n)((?:\|[^\n]*\n)*)`)

// withOptions returns a page with the option tables of a kind regenerated, and the names of these options.
func withOptions(t *testing.T, name string, k Kind) (page string, names []string) {
	t.Helper()
	text, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	page = optionTable.ReplaceAllStringFunc(string(text), func(table string) string {
		part := optionTable.FindStringSubmatch(table)
		if !slices.Contains(strings.Fields(part[2]), k.Name) {
			return table
		}
		var options []targets.Option
		for _, option := range strings.Fields(part[3]) {
			i := slices.IndexFunc(k.Options, func(o targets.Option) bool { return o.Name == option })
			if i < 0 {
				t.Fatalf("%s: %s targets have no option %s", name, k.Name, option)
			}
			options, names = append(options, k.Options[i]), append(names, option)
		}
		return part[1] + markdown(options)
	})
	return page, names
}

// parameterTable matches a table of parameters in a page, after a comment with the family's name.
var parameterTable = regexp.MustCompile(`(<!-- parameters of (\w+): written by a test -->\n)((?:\|[^\n]*\n)*)`)

// TestFamilyPages checks the tables of parameters in the pages about families; -update writes them.
func TestFamilyPages(t *testing.T) {
	for _, f := range Families() {
		name := "../../docs/" + f.Name + ".md"
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		written := false
		page := parameterTable.ReplaceAllStringFunc(string(text), func(table string) string {
			written = true
			return parameterTable.FindStringSubmatch(table)[1] + parametersOf(f)
		})
		if !written {
			t.Errorf("%s has no place for the parameters of %s", name, f.Name)
		}
		golden.Check(t, name, page)
	}
}

// parametersOf returns a table of a family's parameters, with what has them if any is not of all workloads.
func parametersOf(f family.Family) string {
	rows := f.Parameters(nil)
	head, line := "| Parameter |", "|---|"
	some := slices.ContainsFunc(rows, func(h parameter.Help) bool { return h.Of != "" })
	if some {
		head, line = head+" Of |", line+"---|"
	}
	table := head + " Values | Default | Description |\n" + line + "---|---|---|\n"
	for _, h := range rows {
		table += fmt.Sprintf("| `%s` |", h.Name)
		if some {
			table += " " + cmp.Or(h.Of, "all") + " |"
		}
		table += fmt.Sprintf(" %s | %s | %s |\n", h.Values, h.Default, h.About)
	}
	return table
}

// markdown returns a table of options, with their fields in experiment files if any has one.
func markdown(options []targets.Option) string {
	fields := slices.ContainsFunc(options, func(o targets.Option) bool { return o.Field != "" })
	table := "| Option | Description |\n|---|---|\n"
	if fields {
		table = "| Option | Field | Description |\n|---|---|---|\n"
	}
	for _, o := range options {
		row := []string{"`" + o.String() + "`"}
		if fields {
			row = append(row, strings.ReplaceAll("`"+o.Field+"`", "``", ""))
		}
		table += fmt.Sprintf("| %s | %s |\n", strings.Join(row, " | "), o.About())
	}
	return table
}
