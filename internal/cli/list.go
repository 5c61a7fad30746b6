package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/importer"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/published"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/report"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

func newList(s Streams) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "list [" + strings.Join(topicNames(), "|") + "]",
		Short: "List targets, cases, tools, formats and references",
		Long: `List what there is: everything in brief, or one subject with all details.
With -o json the details are always there (docs/schema/list-v1.json).`,
		Example: `  knotmeter list
  knotmeter list targets`,
		Args:              operands(0, 1),
		ValidArgsFunction: limitArgs(1, fixed(topicNames())),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := oneOf("--output", output, tableOrJSON); err != nil {
				return err
			}
			if len(args) == 0 {
				return printList(s.Out, output, topics, true)
			}
			if err := oneOf("list", args[0], topicNames()); err != nil {
				return err
			}
			return printList(s.Out, output, topics[slices.Index(topicNames(), args[0]):][:1], false)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "table", printedAs(tableOrJSON))
	completeFlag(c, "output", tableOrJSON)
	return c
}

// A listing is the JSON output of list: knotmeter/list/v1.
type listing struct {
	Schema     string            `json:"schema"`
	Targets    []listedKind      `json:"targets,omitempty"`
	Suites     []listedSuite     `json:"suites,omitempty"`
	Files      []listedFile      `json:"suite_files,omitempty"`
	Tools      []listedTool      `json:"tools,omitempty"`
	Written    []listedFormat    `json:"report_formats,omitempty"`
	Read       []listedFormat    `json:"import_formats,omitempty"`
	References []listedReference `json:"references,omitempty"`
}

const listSchema = "knotmeter/list/v1"

type listedKind struct {
	Kind    string         `json:"kind"`
	Example string         `json:"example"`
	Targets []listedTarget `json:"targets"`
	Options []listedOption `json:"options"`
}

type listedTarget struct {
	Target string `json:"target"`
	About  string `json:"about"`
}

type listedOption struct {
	Option  string `json:"option"`
	Example string `json:"example"`
	About   string `json:"about"`
}

type listedSuite struct {
	Suite string       `json:"suite"`
	About string       `json:"about"`
	Cases []listedCase `json:"cases"`
}

type listedCase struct {
	Case   string      `json:"case"`
	Role   result.Role `json:"role"`
	Metric string      `json:"metric"`
}

type listedFile struct {
	Suite string `json:"suite"`
	About string `json:"about"`
}

type listedTool struct {
	Tool      string   `json:"tool"`
	Workloads []string `json:"workloads"`
}

type listedFormat struct {
	Format string `json:"format"`
	File   string `json:"file,omitempty"`
	About  string `json:"about"`
}

type listedReference struct {
	Reference string            `json:"reference"`
	Title     string            `json:"title"`
	Publisher string            `json:"publisher"`
	URL       string            `json:"url"`
	Date      string            `json:"date"`
	Machines  string            `json:"machines"`
	Method    string            `json:"method"`
	Runs      string            `json:"runs"`
	Targets   []string          `json:"targets"`
	Figures   []listedStatistic `json:"figures"`
}

type listedStatistic struct {
	Case      string `json:"case"`
	Metric    string `json:"metric"`
	Statistic string `json:"statistic"`
}

// A topic is an argument of list.
type topic struct {
	name  string
	fill  func(*listing)
	brief func(listing) [][]string // rows of a heading and names
	whole func(listing) []prose.Section
}

// topics are the arguments of list, in the order in which list shows them without an argument.
var topics = []topic{
	{"targets", fillTargets, briefTargets, wholeTargets},
	{"cases", fillCases, briefCases, wholeCases},
	{"tools", fillTools, briefTools, wholeTools},
	{"formats", fillFormats, briefFormats, wholeFormats},
	{"references", fillReferences, briefReferences, wholeReferences},
}

func topicNames() []string {
	var names []string
	for _, t := range topics {
		names = append(names, t.name)
	}
	return names
}

// printList prints topics: as JSON, in brief, or with all details.
func printList(w io.Writer, output string, topics []topic, brief bool) error {
	l := listing{Schema: listSchema}
	for _, t := range topics {
		t.fill(&l)
	}
	if output == "json" {
		return printJSON(w, l)
	}
	text := wholeList(topics, l)
	if brief {
		text = briefList(topics, l)
	}
	_, err := io.WriteString(w, text)
	return err
}

func wholeList(topics []topic, l listing) string {
	var sections []prose.Section
	for _, t := range topics {
		sections = append(sections, t.whole(l)...)
	}
	return prose.List(sections)
}

func briefList(topics []topic, l listing) string {
	var s prose.Section
	for _, t := range topics {
		s.Rows = append(s.Rows, t.brief(l)...)
	}
	return prose.List([]prose.Section{s}) + "\n" + wrapParagraphs("'knotmeter list targets' explains targets and "+
		"their options, "+
		"'knotmeter list cases' suites and their cases; so do 'knotmeter list tools', 'knotmeter list formats' and "+
		"'knotmeter list references'.") + "\n"
}

// briefRow returns a row with a heading and the names of items.
func briefRow[T any](heading string, items []T, name func(T) string) []string {
	var names []string
	for _, item := range items {
		names = append(names, name(item))
	}
	return []string{heading, strings.Join(names, ", ")}
}

func fillTargets(l *listing) {
	for _, k := range registry.Kinds() {
		kind := listedKind{Kind: k.Name, Example: k.Example}
		for _, line := range k.Targets {
			kind.Targets = append(kind.Targets, listedTarget{line.Spec, line.About})
		}
		for _, o := range k.Options {
			if o.Refused == nil {
				kind.Options = append(kind.Options, listedOption{o.Name, o.Example, o.About()})
			}
		}
		l.Targets = append(l.Targets, kind)
	}
}

func (k listedKind) section() prose.Section {
	var s prose.Section
	for _, t := range k.Targets {
		s.Rows = append(s.Rows, []string{t.Target, t.About})
	}
	return s
}

func briefTargets(l listing) [][]string {
	var all []listedTarget
	for _, k := range l.Targets {
		all = append(all, k.Targets...)
	}
	return [][]string{briefRow("targets", all, func(t listedTarget) string { return t.Target })}
}

func wholeTargets(l listing) []prose.Section {
	var list []prose.Section
	for _, k := range l.Targets {
		options := prose.Section{Heading: fmt.Sprintf("Options of %s: targets, after the name as in %s", k.Kind, k.Example)}
		for _, o := range k.Options {
			options.Rows = append(options.Rows, []string{targets.Option{Name: o.Option, Example: o.Example}.String(), o.About})
		}
		list = append(list, k.section(), options)
	}
	return list
}

func fillCases(l *listing) {
	for _, suite := range registry.Families().Suites() {
		s := listedSuite{Suite: suite.Name, About: suite.About}
		for _, c := range suite.Cases {
			s.Cases = append(s.Cases, listedCase{c.Name(), c.Role, c.Workload.Traits().Metric})
		}
		l.Suites = append(l.Suites, s)
	}
	for _, f := range registry.Families() {
		if f.File != nil {
			l.Files = append(l.Files, listedFile{f.Name + ":FILE", f.File.About})
		}
	}
}

func briefCases(l listing) [][]string {
	row := briefRow("suites", l.Suites, func(s listedSuite) string { return s.Suite })
	files := briefRow("", l.Files, func(f listedFile) string { return f.Suite })
	return [][]string{{row[0], row[1] + ", " + files[1]}}
}

func wholeCases(l listing) []prose.Section {
	var list []prose.Section
	for _, suite := range l.Suites {
		s := prose.Section{Heading: suite.Suite + ": " + suite.About}
		for _, c := range suite.Cases {
			s.Rows = append(s.Rows, []string{c.Case, roleWords(c.Role), c.Metric})
		}
		list = append(list, s)
	}
	for _, f := range l.Files {
		list = append(list, prose.Section{Heading: f.Suite + ": " + f.About})
	}
	return list
}

// roleWords returns the name of a role for users, who know a bound as a reference.
func roleWords(r result.Role) string {
	if r == result.Bound {
		return "reference"
	}
	return string(r)
}

func fillTools(l *listing) {
	for _, t := range registry.Families().Tools() {
		l.Tools = append(l.Tools, listedTool{t.Name(), supportedKinds(t)})
	}
}

func briefTools(l listing) [][]string {
	return [][]string{briefRow("tools", l.Tools, func(t listedTool) string { return t.Tool })}
}

func wholeTools(l listing) []prose.Section {
	s := prose.Section{Heading: "Tools, with the workloads that they generate:"}
	for _, t := range l.Tools {
		s.Rows = append(s.Rows, []string{t.Tool, strings.Join(t.Workloads, " ")})
	}
	return []prose.Section{s}
}

// supportedKinds returns the kinds of workloads that a tool supports.
func supportedKinds(t family.Tool) []string {
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

func fillFormats(l *listing) {
	for _, f := range report.Formats() {
		l.Written = append(l.Written, listedFormat{f.Name, f.File, f.About})
	}
	for _, f := range importer.Formats() {
		l.Read = append(l.Read, listedFormat{f.Name, "", f.About})
	}
}

func briefFormats(l listing) [][]string {
	name := func(f listedFormat) string { return f.Format }
	return [][]string{briefRow("report formats", l.Written, name), briefRow("import formats", l.Read, name)}
}

func wholeFormats(l listing) []prose.Section {
	written := prose.Section{Heading: "Formats that report writes:"}
	read := prose.Section{Heading: "Formats that import reads:"}
	for _, f := range l.Written {
		written.Rows = append(written.Rows, []string{f.Format, f.File, f.About})
	}
	for _, f := range l.Read {
		read.Rows = append(read.Rows, []string{f.Format, f.About})
	}
	return []prose.Section{written, read}
}

func fillReferences(l *listing) {
	for _, t := range published.All() {
		r := listedReference{
			Reference: t.Name, Title: t.Title, Publisher: t.Publisher, URL: t.URL, Date: t.Date, Machines: t.Machines,
			Method: t.Method, Runs: t.Runs, Targets: t.Targets,
		}
		for _, row := range t.Rows {
			r.Figures = append(r.Figures, listedStatistic{row.Case, row.Metric, row.Statistic})
		}
		l.References = append(l.References, r)
	}
}

func briefReferences(l listing) [][]string {
	return [][]string{briefRow("references", l.References, func(r listedReference) string { return r.Reference })}
}

func wholeReferences(l listing) []prose.Section {
	var list []prose.Section
	for _, r := range l.References {
		about := prose.Section{Heading: r.Reference + ": " + r.Title, Rows: [][]string{
			{"source", r.Publisher}, {"page", r.URL}, {"date", r.Date}, {"machines", r.Machines}, {"method", r.Method},
			{"runs", r.Runs}, {"targets", strings.Join(r.Targets, ", ")},
		}}
		cases := prose.Section{Heading: "Cases of " + r.Reference + ":"}
		for _, f := range r.Figures {
			cases.Rows = append(cases.Rows, []string{f.Case, f.Metric + ", " + f.Statistic})
		}
		list = append(list, about, cases)
	}
	return list
}
