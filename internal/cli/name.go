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
	ownName      = "knotmeter"
	pluginName   = "kubectl-knotmeter"
	completeName = "kubectl_complete-knotmeter"
)

// A caller is the name that the program was invoked by.
type caller string

// callerName returns the caller for the first argument of the process.
func callerName(arg0 string) caller {
	return caller(strings.TrimSuffix(filepath.Base(arg0), ".exe"))
}

func (c caller) plugin() bool { return c == pluginName || c == completeName }

// command returns what the user types to run the program.
func (c caller) command() string {
	if c.plugin() {
		return "kubectl " + ownName
	}
	return ownName
}

// args returns the arguments of the command. For completion, kubectl passes an incomplete line without the command that
// completes it.
func (c caller) args(args []string) []string {
	if c == completeName {
		return append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	return args
}

// rewriteCommands replaces the commands in a text by what the user types.
func (c caller) rewriteCommands(root *cobra.Command, text string) string {
	if !c.plugin() {
		return text
	}
	var names []string
	for _, sub := range root.Commands() {
		names = append(names, regexp.QuoteMeta(sub.Name()))
	}
	commands := regexp.MustCompile(`\b(kubectl )?` + ownName + ` (` + strings.Join(names, "|") + `)\b`)
	return commands.ReplaceAllString(text, c.command()+" $2")
}

// rename rewrites the commands in the help texts of root and its subcommands to what the user types.
func (c caller) rename(root *cobra.Command) {
	if !c.plugin() {
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: c.command()}
	c.renameBelow(root, root)
}

func (c caller) renameBelow(root, command *cobra.Command) {
	command.Long, command.Example = c.rewriteCommands(root, command.Long), c.rewriteCommands(root, command.Example)
	command.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = c.rewriteCommands(root, f.Usage) })
	for _, sub := range command.Commands() {
		c.renameBelow(root, sub)
	}
}
