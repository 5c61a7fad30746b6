package cli

import (
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/knotmeter/knotmeter/internal/image"
	"github.com/knotmeter/knotmeter/internal/reference"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/store"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// shells are those that there are completion scripts for, with what writes them.
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

// completeFlags gives every flag of a command and of those below it what a shell offers for it. Without an own function
// a flag is offered nothing, except for files.
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
			panic(err) // the flag was found a moment ago
		}
	})
	for _, sub := range c.Commands() {
		completeFlags(sub)
	}
}

// offers are the functions that complete flags, by the name of the flag. None of them asks the network, and what cannot
// be read is not offered.
var offers = map[string]cobra.CompletionFunc{
	targetFlag: offerTargets, "baseline": offerGiven, "price": offerPriced, "switch": offerPriced,
	"context": offerContexts,
	"suite":   inList(offerSuites), "case": offerCases, "primary": offerCases, "tool": inList(offerTools),
	"reference": inList(offerReferences), "format": inList(fixed(formatNames())), "resume": offerResults,
	"from": offerResults, "progress": fixed(progressModes), "rbac": fixed([]string{narrowRBAC, wideRBAC}),
	"fail-on": fixed(severities), "arch": inList(fixed(image.Architectures)),
	"file": cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt),
}

// fixed offers names.
func fixed(names []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return beginning(names, typed)
	}
}

// beginning are the completions that begin with what was typed. A space follows unless one of them can go on.
func beginning(all []string, typed string) ([]string, cobra.ShellCompDirective) {
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

// inList completes the last of several texts with commas between.
func inList(offer cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		at := strings.LastIndex(typed, ",") + 1
		found, directive := offer(c, args, typed[at:])
		for i := range found {
			found[i] = typed[:at] + found[i]
		}
		return found, directive
	}
}

// offerTargets completes a target: its kind and name, and behind "?" its options.
func offerTargets(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	kind, rest, named := strings.Cut(typed, ":")
	if at := strings.LastIndexAny(typed, "?&") + 1; named && at > 0 {
		k, err := registry.FindKind(kind)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return beginning(targetOptions(k, typed[:at]), typed)
	}
	var all []string
	for _, k := range registry.Kinds() {
		if named && k.Name != kind {
			continue
		}
		for _, line := range namesOf(c, k, rest) {
			all = append(all, cobra.CompletionWithDesc(line.Spec, line.About))
		}
	}
	return beginning(all, typed)
}

// namesOf are the targets of a kind, also those that only this machine knows.
func namesOf(c *cobra.Command, k registry.Kind, typed string) []registry.Line {
	if k.Names == nil {
		return k.Targets
	}
	spec := targets.Spec{Kind: k.Name, Name: typed}
	if given, err := (&kindFlags{set: c.Flags()}).given(k); err == nil {
		spec = with(spec, given)
	}
	list := []registry.Line{{Spec: k.Name + ":", About: k.Targets[0].About}}
	for _, name := range k.Names(spec) {
		list = append(list, registry.Line{Spec: k.Name + ":" + name})
	}
	return list
}

// targetOptions are the options of a kind behind what was typed.
func targetOptions(k registry.Kind, typed string) []string {
	var list []string
	for _, o := range k.Options {
		if o.Refused == nil {
			list = append(list, cobra.CompletionWithDesc(typed+o.Name+"=", o.About()))
		}
	}
	return list
}

// offerContexts completes the contexts of the kubeconfig.
func offerContexts(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	var all []string
	for _, k := range registry.Kinds() {
		if slices.ContainsFunc(k.Options, func(o targets.Option) bool { return o.Unnamed }) {
			for _, line := range namesOf(c, k, typed)[1:] {
				all = append(all, strings.TrimPrefix(line.Spec, k.Name+":"))
			}
		}
	}
	return beginning(all, typed)
}

// offerGiven completes one of the targets of the command line.
func offerGiven(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	texts, _ := c.Flags().GetStringArray(targetFlag) // none where the command has no such flag
	var names []string
	for _, text := range slices.Concat(texts, args) {
		if spec, err := targets.ParseSpec(text); err == nil {
			names = append(names, spec.Label())
		}
	}
	return beginning(unique(names), typed)
}

// offerPriced completes one of these targets, for its price or its switch.
func offerPriced(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	names, _ := offerGiven(c, args, "")
	for i := range names {
		names[i] += "="
	}
	return beginning(names, typed)
}

// offerSuites completes a suite, or the file of one.
func offerSuites(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	var all []string
	for _, s := range registry.Families().Suites() {
		all = append(all, cobra.CompletionWithDesc(s.Name, s.About))
	}
	found, directive := beginning(all, typed)
	if len(found) == 0 && strings.Contains(typed, ":") {
		return nil, cobra.ShellCompDirectiveDefault // a file
	}
	return found, directive
}

// offerCases completes the cases of the suites that the command line names.
func offerCases(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
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
	return beginning(all, typed)
}

// offerTools completes a tool.
func offerTools(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	var all []string
	for _, t := range registry.Families().Tools() {
		all = append(all, cobra.CompletionWithDesc(t.Name(), strings.Join(carriedOut(t), " ")))
	}
	return beginning(all, typed)
}

// offerReferences completes a published table.
func offerReferences(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	var all []string
	for _, t := range reference.All() {
		all = append(all, cobra.CompletionWithDesc(t.Name, t.Title))
	}
	return beginning(all, typed)
}

// offerResults completes results directories that are not arguments yet, or any directory where there is none.
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

// escapePattern makes text a pattern that matches only itself.
func escapePattern(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(text)
}

// upTo offers arguments up to a number of them.
func upTo(most int, offer cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(c, args, typed)
	}
}

// completeFlag makes a flag of a command one that takes one of these.
func completeFlag(c *cobra.Command, flag string, names []string) {
	if err := c.RegisterFlagCompletionFunc(flag, fixed(names)); err != nil {
		panic(err) // the caller has just defined it
	}
}
