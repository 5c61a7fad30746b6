package cli

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The names under which the program is started. Under the second kubectl finds it as a plugin, and under the third asks
// it to complete a command line.
const (
	ownName      = "knotmeter"
	pluginName   = "kubectl-knotmeter"
	completeName = "kubectl_complete-knotmeter"
)

// A caller is the name that the program was invoked by.
type caller string

// callerOf is the caller that the first argument of the process names.
func callerOf(arg0 string) caller {
	return caller(strings.TrimSuffix(filepath.Base(arg0), ".exe"))
}

func (c caller) plugin() bool { return c == pluginName || c == completeName }

// command is what its user types.
func (c caller) command() string {
	if c.plugin() {
		return "kubectl " + ownName
	}
	return ownName
}

// args are those of the command: kubectl gives those of an incomplete line without more.
func (c caller) args(args []string) []string {
	if c == completeName {
		return append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	return args
}

// words are a text in which commands are such as this user types.
func (c caller) words(root *cobra.Command, text string) string {
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

// rename makes a command and those below it speak of themselves as their user does. A shell completes the lines of
// kubectl by kubectl's script.
func (c caller) rename(root *cobra.Command) {
	if !c.plugin() {
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: c.command()}
	c.renameBelow(root, root)
}

func (c caller) renameBelow(root, command *cobra.Command) {
	command.Long, command.Example = c.words(root, command.Long), c.words(root, command.Example)
	command.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = c.words(root, f.Usage) })
	for _, sub := range command.Commands() {
		c.renameBelow(root, sub)
	}
}
