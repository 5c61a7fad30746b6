package cli

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The names under which the program can be started: its own, as a kubectl plugin, and for the completion of a kubectl
// command line.
const (
	ownName        = "knotmeter"
	pluginName     = "kubectl-knotmeter"
	completionName = "kubectl_complete-knotmeter"
)

// An invocation is the name under which the program was started.
type invocation string

// invocationOf returns the invocation for the first argument of the process.
func invocationOf(arg0 string) invocation {
	return invocation(strings.TrimSuffix(filepath.Base(arg0), ".exe"))
}

func (i invocation) plugin() bool { return i == pluginName || i == completionName }

// command returns what the user types to run the program.
func (i invocation) command() string {
	if i.plugin() {
		return "kubectl " + ownName
	}
	return ownName
}

// args returns the arguments of the command. For completion, kubectl passes only the words to complete; cobra expects
// its hidden command before them.
func (i invocation) args(args []string) []string {
	if i == completionName {
		return append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	return args
}

// rewriter returns a function that replaces the commands in a text by what the user types, such as
// "knotmeter run" by "kubectl knotmeter run".
func (i invocation) rewriter(root *cobra.Command) func(text string) string {
	if !i.plugin() {
		return func(text string) string { return text }
	}
	var names []string
	for _, sub := range root.Commands() {
		names = append(names, regexp.QuoteMeta(sub.Name()))
	}
	commands := regexp.MustCompile(`\b(kubectl )?` + ownName + ` (` + strings.Join(names, "|") + `)\b`)
	return func(text string) string { return commands.ReplaceAllString(text, i.command()+" $2") }
}

// rewriteHelp rewrites the commands in the help texts of root and its subcommands to what the user types.
func (i invocation) rewriteHelp(root *cobra.Command) {
	if !i.plugin() {
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: i.command()}
	rewriteHelpBelow(root, i.rewriter(root))
}

// rewriteHelpBelow rewrites the help texts of a command and its subcommands.
func rewriteHelpBelow(command *cobra.Command, rewrite func(text string) string) {
	command.Long, command.Example = rewrite(command.Long), rewrite(command.Example)
	command.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = rewrite(f.Usage) })
	for _, sub := range command.Commands() {
		rewriteHelpBelow(sub, rewrite)
	}
}
