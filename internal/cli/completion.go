package cli

import (
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/knotmeter/knotmeter/internal/image"
	"github.com/knotmeter/knotmeter/internal/published"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/store"
)

// shells are the shells with completion scripts, and the functions that write them.
var shells = []struct {
	name  string
	write func(root *cobra.Command, w io.Writer) error
}{
	{"bash", func(c *cobra.Command, w io.Writer) error { return c.GenBashCompletionV2(w, true) }},
	{"zsh", (*cobra.Command).GenZshCompletion},
	{"fish", func(c *cobra.Command, w io.Writer) error { return c.GenFishCompletion(w, true) }},
	{"powershell", (*cobra.Command).GenPowerShellCompletionWithDesc},
}

func shellNames() []string {
	var names []string
	for _, s := range shells {
		names = append(names, s.name)
	}
	return names
}

func newCompletion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a completion script for a shell",
		Long: `Print a script with which a shell completes commands, flags, targets (also the
contexts of the kubeconfig), suites, cases, tools, formats, references and
results directories.`,
		Example: `  source <(knotmeter completion bash)
  knotmeter completion zsh > "${fpath[1]}/_knotmeter"
  knotmeter completion fish > ~/.config/fish/completions/knotmeter.fish`,
		Args:      operands(1, 1),
		ValidArgs: shellNames(),
		RunE: func(c *cobra.Command, args []string) error {
			for _, s := range shells {
				if s.name == args[0] {
					return s.write(c.Root(), c.OutOrStdout())
				}
			}
			return oneOf("SHELL", args[0], shellNames())
		},
	}
}

// completeFlags registers a completion function for every flag of a command and its subcommands. Flags without one are
// not completed, except for files and directories.
func completeFlags(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		offer, ok := offers[f.Name]
		_, own := c.GetFlagCompletionFunc(f.Name)
		switch {
		case own || !ok && slices.Contains([]string{"FILE", "DIR"}, strings.Join(f.Annotations[argumentOf], "")):
			return
		case !ok:
			offer = cobra.NoFileCompletions
		}
		if err := c.RegisterFlagCompletionFunc(f.Name, offer); err != nil {
			panic(err) // cannot happen: the flag exists
		}
	})
	for _, sub := range c.Commands() {
		completeFlags(sub)
	}
}

// offers are the functions that complete flags, by the name of the flag. None of them uses the network; errors are
// ignored.
var offers = map[string]cobra.CompletionFunc{
	targetFlag: offerTargets, "baseline": offerNamedTargets, "price": offerTargetEquals, "switch": offerTargetEquals,
	"suite": commaSeparated(offerSuites), "case": offerCases, "primary": offerCases, "tool": commaSeparated(offerTools),
	"reference": commaSeparated(offerReferences), "format": commaSeparated(fixed(formatNames())), "resume": offerResults,
	"from": offerResults, "progress": fixed(progressModes), "rbac": fixed([]string{narrowRBAC, wideRBAC}),
	"fail-on": fixed(severities), "arch": commaSeparated(fixed(image.Architectures)),
	"file": cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt),
}

// fixed returns a function that completes names.
func fixed(names []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return withPrefix(names, typed)
	}
}

// withPrefix returns the completions that begin with the typed text. The shell adds a space unless one of them can be
// continued.
func withPrefix(all []string, typed string) ([]string, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	var fit []string
	for _, completion := range all {
		text, _, _ := strings.Cut(completion, "\t")
		if !strings.HasPrefix(text, typed) {
			continue
		}
		fit = append(fit, completion)
		if strings.ContainsAny(text[max(0, len(text)-1):], ":/=") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
	}
	return fit, directive
}

// commaSeparated returns a function that completes the last of several texts separated by commas.
func commaSeparated(offer cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		at := strings.LastIndex(typed, ",") + 1
		found, directive := offer(c, args, typed[at:])
		for i := range found {
			found[i] = typed[:at] + found[i]
		}
		return found, directive
	}
}

// offerTargets completes a target: its kind and name, and after "?" its options.
func offerTargets(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	kind, rest, named := strings.Cut(typed, ":")
	if at := strings.LastIndexAny(typed, "?&") + 1; named && at > 0 {
		k, err := registry.FindKind(kind)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return withPrefix(targetOptions(k, typed[:at]), typed)
	}
	var all []string
	for _, k := range registry.Kinds() {
		if named && k.Name != kind {
			continue
		}
		for _, line := range targetsOfKind(k, rest) {
			all = append(all, cobra.CompletionWithDesc(line.Spec, line.About))
		}
	}
	return withPrefix(all, typed)
}

// targetsOfKind returns the targets of a kind, including those that only this machine knows.
func targetsOfKind(k registry.Kind, typed string) []registry.Line {
	if k.Names == nil {
		return k.Targets
	}
	list := []registry.Line{{Spec: k.Name + ":", About: k.Targets[0].About}}
	for _, name := range k.Names(result.Spec{Kind: k.Name, Name: typed}) {
		list = append(list, registry.Line{Spec: k.Name + ":" + name})
	}
	return list
}

// targetOptions returns the options of a kind, each after the typed text.
func targetOptions(k registry.Kind, typed string) []string {
	var list []string
	for _, o := range k.Options {
		if o.Refused == nil {
			list = append(list, cobra.CompletionWithDesc(typed+o.Name+"=", o.About()))
		}
	}
	return list
}

// offerNamedTargets completes one of the targets on the command line.
func offerNamedTargets(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	texts, _ := c.Flags().GetStringArray(targetFlag) // none if the command has no such flag
	var names []string
	for _, text := range slices.Concat(texts, args) {
		if spec, err := result.ParseSpec(text); err == nil {
			names = append(names, spec.Label())
		}
	}
	return withPrefix(unique(names), typed)
}

// offerTargetEquals completes one of the targets on the command line with "=", before its price or switch.
func offerTargetEquals(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	names, _ := offerNamedTargets(c, args, "")
	for i := range names {
		names[i] += "="
	}
	return withPrefix(names, typed)
}

// offerSuites completes a suite, or its file.
func offerSuites(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	var all []string
	for _, s := range registry.Families().Suites() {
		all = append(all, cobra.CompletionWithDesc(s.Name, s.About))
	}
	found, directive := withPrefix(all, typed)
	if len(found) == 0 && strings.Contains(typed, ":") {
		return nil, cobra.ShellCompDirectiveDefault // a file
	}
	return found, directive
}

// offerCases completes the cases of the suites on the command line, and parameters after a colon.
func offerCases(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	if at := strings.LastIndexAny(typed, ":,") + 1; at > 0 {
		var all []string
		for _, p := range registry.Families().Parameters(typed) {
			all = append(all, cobra.CompletionWithDesc(typed[:at]+p.Name+"=", p.Values+"; "+p.About))
		}
		return withPrefix(all, typed)
	}
	wanted, _ := c.Flags().GetStringSlice("suite")
	var all []string
	for _, s := range registry.Families().Suites() {
		if !slices.Contains(wanted, s.Name) {
			continue
		}
		for _, one := range s.Cases {
			all = append(all, cobra.CompletionWithDesc(one.Name(), roleWords(one.Role)+", "+one.Workload.Traits().Metric))
		}
	}
	return withPrefix(all, typed)
}

// offerTools completes a tool.
func offerTools(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	var all []string
	for _, t := range registry.Families().Tools() {
		all = append(all, cobra.CompletionWithDesc(t.Name(), strings.Join(supportedKinds(t), " ")))
	}
	return withPrefix(all, typed)
}

// offerReferences completes a published table.
func offerReferences(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	var all []string
	for _, t := range published.All() {
		all = append(all, cobra.CompletionWithDesc(t.Name, t.Title))
	}
	return withPrefix(all, typed)
}

// offerResults completes results directories that are not arguments yet, or any directory if there are none.
func offerResults(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	patterns := []string{escapePattern(typed) + "*"}
	if strings.HasPrefix(resultsParent+"/", typed) {
		patterns = append(patterns, resultsParent+"/*")
	}
	var found []string
	for _, pattern := range patterns {
		names, _ := filepath.Glob(pattern + "/" + store.ExperimentFile) // the pattern is valid
		for _, name := range names {
			if dir := filepath.Dir(name); !slices.Contains(args, dir) {
				found = append(found, dir)
			}
		}
	}
	if len(found) == 0 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// escapePattern returns a pattern that matches only text.
func escapePattern(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(text)
}

// limitArgs returns a function that completes arguments as offer does, up to the given number of arguments.
func limitArgs(most int, offer cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(c, args, typed)
	}
}

// completeFlag registers names as completions of a flag.
func completeFlag(c *cobra.Command, flag string, names []string) {
	if err := c.RegisterFlagCompletionFunc(flag, fixed(names)); err != nil {
		panic(err) // cannot happen: the caller has just defined the flag
	}
}
