package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/knotmeter/knotmeter/internal/prose"
)

// A heading is the heading of a group of flags in a help text.
type heading string

// The headings of run and plan, except those of kinds of targets.
const (
	measured heading = "What is measured"
	pacing   heading = "Load"
	design   heading = "Design"
	outcome  heading = "Output"
	running  heading = "Running"
)

// The annotations of flags for help texts. The name of a flag's argument stands in backquotes at the beginning of its
// usage, from where arrangeFlags moves it to an annotation.
const (
	headingOf  = "knotmeter_heading"
	argumentOf = "knotmeter_argument" // name of the argument, such as TARGET
	rareFlag   = "knotmeter_rarely"   // only --help-all shows the flag
)

// annotate sets the heading of a flag, and whether only --help-all shows it.
func annotate(f *pflag.Flag, under heading, rare bool) {
	f.Annotations = map[string][]string{headingOf: {string(under)}}
	if rare {
		f.Annotations[rareFlag] = []string{}
	}
}

func rare(f *pflag.Flag) bool {
	_, is := f.Annotations[rareFlag]
	return is
}

// wholeHelp is the flag --help-all. Setting it returns pflag.ErrHelp, so that help is printed even if other arguments
// are wrong.
type wholeHelp bool

const helpAll = "help-all"

func (w *wholeHelp) String() string { return fmt.Sprint(bool(*w)) }
func (w *wholeHelp) Type() string   { return "bool" }

func (w *wholeHelp) Set(string) error {
	*w = true
	return pflag.ErrHelp
}

// arrangeHelp sets the help texts of all commands and adds --help-all, which --help mentions if it hides flags.
func arrangeHelp(root *cobra.Command) {
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		all := c.Flags().Lookup(helpAll)
		_, _ = io.WriteString(c.OutOrStdout(), helpText(c, all != nil && all.Value.String() == "true"))
	})
	arrangeFlags(root)
}

// arrangeFlags adds --help-all to a command and its subcommands, and moves the arguments of flags to annotations.
func arrangeFlags(c *cobra.Command) {
	c.Flags().SortFlags = false
	some := false
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		if argument, usage, found := strings.Cut(strings.TrimPrefix(f.Usage, "`"), "` "); found {
			f.Usage, f.Annotations[argumentOf] = usage, []string{argument}
		}
		some = some || rare(f) && !f.Hidden
	})
	all := c.Flags().VarPF(new(wholeHelp), helpAll, "", "show every flag")
	all.NoOptDefVal, all.Hidden = "true", !some
	for _, sub := range c.Commands() {
		arrangeFlags(sub)
	}
}

// helpText returns the help of a command, with all flags or only the common ones.
func helpText(c *cobra.Command, all bool) string {
	parts := []string{wrapParagraphs(cmp.Or(c.Long, c.Short)), "Usage:\n  " + usageLine(c)}
	if c.Example != "" {
		parts = append(parts, "Examples:\n"+c.Example)
	}
	sections := slices.Concat(commandSections(c), flagSections(c, all))
	if len(sections) > 0 {
		parts = append(parts, strings.TrimSuffix(prose.List(sections), "\n"))
	}
	if c.HasAvailableSubCommands() {
		parts = append(parts, fmt.Sprintf("'%s COMMAND --help' explains a command.", c.CommandPath()))
	}
	if f := c.Flags().Lookup(helpAll); f != nil && !f.Hidden && !all {
		parts = append(parts, fmt.Sprintf("'%s --help-all' shows all %d flags.", c.CommandPath(), len(shownFlags(c, true))))
	}
	return strings.Join(parts, "\n\n") + "\n"
}

// usageLine returns the usage line of a command.
func usageLine(c *cobra.Command) string {
	switch {
	case c.HasAvailableSubCommands():
		return c.CommandPath() + " COMMAND"
	case len(shownFlags(c, true)) == 0:
		return strings.TrimSuffix(c.UseLine(), " [flags]")
	}
	return c.UseLine()
}

// wrapParagraphs wraps the paragraphs of a text to prose.Columns. Indented ones are commands and tables and stay as
// they are.
func wrapParagraphs(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, paragraph := range paragraphs {
		if !strings.HasPrefix(paragraph, " ") {
			paragraphs[i] = strings.Join(prose.Wrap(paragraph, prose.Columns), "\n")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// commandSections returns the subcommands of a command by group.
func commandSections(c *cobra.Command) []prose.Section {
	groups := c.Groups()
	if len(groups) == 0 {
		groups = []*cobra.Group{{Title: "Commands:"}}
	}
	var list []prose.Section
	for _, g := range groups {
		s := prose.Section{Heading: g.Title}
		for _, sub := range c.Commands() {
			if sub.GroupID == g.ID && sub.IsAvailableCommand() {
				s.Rows = append(s.Rows, []string{sub.Name(), sub.Short})
			}
		}
		if len(s.Rows) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// shownFlags returns the flags of a command that its help shows, in the order of definition.
func shownFlags(c *cobra.Command, all bool) []*pflag.Flag {
	var list []*pflag.Flag
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && (all || !rare(f)) && f.Name != "help" && f.Name != helpAll {
			list = append(list, f)
		}
	})
	return list
}

// flagSections returns the flags of a command by heading.
func flagSections(c *cobra.Command, all bool) []prose.Section {
	var list []prose.Section
	for _, f := range shownFlags(c, all) {
		under := "Flags:"
		if h := f.Annotations[headingOf]; len(h) > 0 {
			under = h[0] + ":"
		}
		i := slices.IndexFunc(list, func(s prose.Section) bool { return s.Heading == under })
		if i < 0 {
			i, list = len(list), append(list, prose.Section{Heading: under})
		}
		list[i].Rows = append(list[i].Rows, []string{flagTerm(f), flagAbout(f)})
	}
	return list
}

// flagTerm returns a flag with its argument: -f, --file FILE.
func flagTerm(f *pflag.Flag) string {
	term := "    --" + f.Name
	if f.Shorthand != "" {
		term = "-" + f.Shorthand + ", --" + f.Name
	}
	argument := strings.Join(f.Annotations[argumentOf], "")
	switch {
	case argument == "":
		return term
	case f.NoOptDefVal != "":
		return term + "[=" + argument + "]"
	}
	return term + " " + argument
}

// flagAbout returns the description of a flag and its default.
func flagAbout(f *pflag.Flag) string {
	value := strings.Trim(f.DefValue, "[]")
	if slices.Contains([]string{"", "0", "0s", "false"}, value) {
		return f.Usage
	}
	return fmt.Sprintf("%s (default: %s)", f.Usage, value)
}
