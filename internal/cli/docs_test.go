package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/registry"
)

// A docPage is a document for readers.
type docPage struct{ name, text string }

// pages returns the documents that mention commands and options.
func pages(t *testing.T) []docPage {
	t.Helper()
	var list []docPage
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "test/cluster/*.md", "bench/*.md",
		".github/*.md", ".github/ISSUE_TEMPLATE/*.yml"} {
		names, err := filepath.Glob("../../" + pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: no page: %v", pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if name := strings.TrimPrefix(name, "../../"); name != commandsPage { // helps returns the same texts
				list = append(list, docPage{name, string(text)})
			}
		}
	}
	return list
}

// helps returns the help texts of the commands as pages.
func helps(root *cobra.Command) []docPage {
	var list []docPage
	for _, c := range commands(root) {
		list = append(list, docPage{c.CommandPath() + " --help", c.Long + "\n" + c.Example + "\n" + c.Flags().FlagUsages()})
	}
	return list
}

// commands returns the commands that users see.
func commands(root *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{root}
	for _, c := range root.Commands() {
		if !c.Hidden {
			list = append(list, commands(c)...)
		}
	}
	return list
}

// lines returns the lines of code blocks, fenced and indented; continued lines are joined.
func (p docPage) lines() []string {
	var list []string
	fenced := false
	for line := range strings.Lines(strings.ReplaceAll(p.text, "\\\n", " ")) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		if fenced || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "  knotmeter") {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return list
}

// inline returns the pieces of code within sentences and tables.
func (p docPage) inline() []string {
	var list []string
	for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(p.text, -1) {
		list = append(list, strings.ReplaceAll(m[1], `\|`, "|"))
	}
	for _, m := range regexp.MustCompile(`'(knotmeter [^'\n]+)'`).FindAllStringSubmatch(p.text, -1) {
		list = append(list, m[1])
	}
	return list
}

// A commandLine is a command line of the program, without its name. Within sentences it may be incomplete.
type commandLine struct {
	args  []string
	whole bool
}

// commandLines returns the command lines of the page.
func (p docPage) commandLines(root *cobra.Command) []commandLine {
	program := regexp.MustCompile(`^(?:\$ |- run: |run: |sudo |bin/|kubectl )*knotmeter (.*)$`)
	var found []commandLine
	for _, line := range p.lines() {
		if m := program.FindStringSubmatch(line); m != nil {
			found = append(found, commandLine{shellWords(m[1]), true})
		}
	}
	for _, code := range p.inline() {
		m := program.FindStringSubmatch(code)
		words := shellWords(code)
		switch {
		case m != nil:
			words = shellWords(m[1])
		case len(words) < 2 || !isCommand(root, words[0]):
			continue
		}
		found = append(found, commandLine{args: words})
	}
	return found
}

func isCommand(root *cobra.Command, name string) bool {
	return slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
}

// shellWords splits a line as a shell does: up to a comment, pipe or redirection, with quotes. It drops an ellipsis,
// unless it stands for the text of a gate.
func shellWords(line string) []string {
	line, _, _ = strings.Cut(line, " #")
	var list []string
	for _, word := range regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`).FindAllString(line, -1) {
		if word == "|" || word == "||" || strings.HasPrefix(word, ">") {
			break
		}
		if word == "…" && len(list) > 0 && list[len(list)-1] == "--gate" {
			word = "*>=0"
		}
		if word != "…" && word != "..." {
			list = append(list, strings.NewReplacer("'", "", `"`, "").Replace(word))
		}
	}
	return list
}

// example replaces placeholders in a word by examples.
func example(word, dir string) string {
	word = directory().ReplaceAllString(word, "local:"+dir+"$1")
	for _, own := range [][2]string{
		{"lab:<datapath>", "lab:native"}, {"kube:CONTEXT", "kube:a"}, {"local:DIR", "local:/var/tmp"},
		{"URL", "https://a.example:8200"}, {"SEED", "7"}, {"NAME", "native"}, {"…", ""}, {"...", ""},
	} {
		word = strings.ReplaceAll(word, own[0], own[1])
	}
	return word
}

// directory returns a pattern that matches the directory of a local target.
func directory() *regexp.Regexp { return regexp.MustCompile(`local:(/[a-z/]+)`) }

// fixtures creates the files and directories that command lines of the pages name, and returns their parent.
func fixtures(t *testing.T, pages []docPage) string {
	t.Helper()
	dir := t.TempDir()
	block := func(name, begin, end string) string {
		i := slices.IndexFunc(pages, func(p docPage) bool { return p.name == name })
		_, rest, found := strings.Cut(pages[i].text, begin)
		text, _, ended := strings.Cut(rest, end)
		if !found || !ended {
			t.Fatalf("%s: no text from %q to %q", name, begin, end)
		}
		return text
	}
	code := func(text string) string { // the indented lines
		lines := regexp.MustCompile(`(?m)^    .*\n`).FindAllString(text, -1)
		return strings.ReplaceAll("\n"+strings.Join(lines, ""), "\n    ", "\n")
	}
	for name, text := range map[string]string{
		"experiment.yaml": block("docs/experiment-files.md", "```yaml\n", "```"),
		"shop.yaml":       code(block("docs/app.md", "## What you describe\n", "\n## ")),
		"jobs.fio":        code(block("docs/storage.md", "## Your own jobs\n", "\n## ")),
		"FILE":            "{}",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS("../../examples")); err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		for _, m := range directory().FindAllStringSubmatch(p.text, -1) {
			if err := os.MkdirAll(dir+m[1], 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Chdir(dir)
	t.Setenv("VAULT_ADDR", "https://vault.example:8200")
	t.Setenv("VAULT_TOKEN", "example")
	return dir
}

// parsed parses a command line as the program does, without running it.
func parsed(line commandLine, dir string) error {
	var args []string
	for _, word := range line.args {
		args = append(args, example(word, dir))
	}
	root := newRoot(Streams{Out: io.Discard, Err: io.Discard}, "test")
	c, rest, err := root.Find(args)
	switch {
	case err != nil:
		return err
	case c == root:
		return fmt.Errorf("there is no command %q", args)
	}
	c.InitDefaultHelpFlag()
	if err := c.ParseFlags(rest); err != nil {
		return err
	}
	operands := firstOf(c.Flags().Args())
	if c.HasSubCommands() && len(operands) > 0 {
		return unknownCommand(c, operands)
	}
	if line.whole || len(operands) > 0 {
		if err := c.ValidateArgs(operands); err != nil {
			return err
		}
	}
	texts, err := c.Flags().GetStringArray(targetFlag)
	if err != nil {
		return nil // a command without targets
	}
	if c.Name() == "run" || c.Name() == "plan" {
		return resolved(c, rest)
	}
	return targetsParsed(append(texts, c.Flags().Args()...))
}

// firstOf returns the operands, each with the first of its alternatives: targets for targets|cases.
func firstOf(operands []string) []string {
	var list []string
	for _, text := range operands {
		first, _, _ := strings.Cut(text, "|")
		list = append(list, first)
	}
	return list
}

func targetsParsed(texts []string) error {
	for _, text := range texts {
		if _, err := openTarget(text); err != nil {
			return err
		}
	}
	return nil
}

// resolved resolves the experiment of a command line.
func resolved(command *cobra.Command, args []string) error {
	f := command.Flags()
	if !f.Changed(targetFlag) && !f.Changed("file") && f.NArg() == 0 {
		return nil // only an option is mentioned
	}
	var o options
	var x experiment
	defer x.close(io.Discard)
	c := &cobra.Command{Use: command.Name()}
	o.register(c)
	if err := c.ParseFlags(args); err != nil {
		return err
	}
	if err := o.read(context.Background(), f.Args()); err != nil {
		return err
	}
	return x.resolve(context.Background(), &o, "test")
}

// TestDocumentedCommands parses and resolves every command line of the documentation and of the help texts.
func TestDocumentedCommands(t *testing.T) {
	root := newRoot(Streams{}, "test")
	documents := pages(t)
	dir := fixtures(t, documents)
	n := 0
	for _, p := range append(documents, helps(root)...) {
		for _, line := range p.commandLines(root) {
			n++
			if err := parsed(line, dir); err != nil {
				t.Errorf("%s: %s: %v", p.name, strings.Join(line.args, " "), err)
			}
		}
	}
	if n < 90 {
		t.Errorf("only %d command lines were found", n)
	}
}

// shownExperiment matches an experiment file in a page.
var shownExperiment = regexp.MustCompile("(?s)```ya?ml\n(apiVersion: knotmeter/v1\n.*?)```")

// TestDocumentedExperiments resolves every experiment file, those in pages included, without connecting to its targets.
func TestDocumentedExperiments(t *testing.T) {
	files := map[string]string{} // by where they are shown
	for _, p := range pages(t) {
		for i, m := range shownExperiment.FindAllStringSubmatch(p.text, -1) {
			name := fmt.Sprintf("%s, experiment %d", p.name, i+1)
			files[name] = filepath.Join(t.TempDir(), "experiment.yaml")
			if err := os.WriteFile(files[name], []byte(m[1]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(files) < 3 {
		t.Errorf("pages show only %d experiment files", len(files))
	}
	for _, pattern := range []string{"docs/gallery/*.yaml", "test/action/testdata/*.yaml"} {
		names, err := filepath.Glob("../../" + pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: no experiment file: %v", pattern, err)
		}
		for _, name := range names {
			files[name] = name
		}
	}
	for name, file := range files {
		if err := parsed(commandLine{[]string{"plan", "-f", file}, true}, t.TempDir()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDocumentedFlags checks that every flag that the documentation mentions exists, and that the documentation
// mentions every flag, by the name of its option if it has one.
func TestDocumentedFlags(t *testing.T) {
	known, shown := map[string]bool{}, map[string]bool{}
	for _, c := range commands(newRoot(Streams{}, "test")) {
		c.InitDefaultHelpFlag()
		c.Flags().VisitAll(func(f *pflag.Flag) {
			known["--"+f.Name] = true
			if f.Shorthand != "" {
				known["-"+f.Shorthand] = true
			}
		})
	}
	flag := regexp.MustCompile(`^--?[a-z][a-z-]*`)
	for _, p := range pages(t) {
		for _, code := range p.inline() {
			name := flag.FindString(code)
			shown[name] = true
			others := !strings.HasPrefix(p.name, "docs/") || slices.Contains(ofOthers(), name)
			if strings.HasPrefix(name, "--") && !known[name] && !others {
				t.Errorf("%s: no command has the flag %s", p.name, code)
			}
			for _, word := range shellWords(code) {
				shown[flag.FindString(word)] = true
			}
		}
		for _, line := range p.lines() {
			for _, word := range shellWords(line) {
				shown[flag.FindString(word)] = true
			}
		}
	}
	for _, kind := range registry.Kinds() {
		for _, o := range kind.Options { // TestTargetPages has them on a page
			shown["--"+o.Name] = true
		}
	}
	for _, c := range commands(newRoot(Streams{}, "test")) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !shown["--"+f.Name] && !shown["-"+f.Shorthand] {
				t.Errorf("no page mentions --%s of %s", f.Name, c.CommandPath())
			}
		})
	}
}

// ofOthers returns flags of other programs that the documentation mentions.
func ofOthers() []string {
	return []string{"--output-format", "--json-stream", "--bidir", "--omit", "--get-server-output"}
}

// TestDocumentedCases checks that everything in the documentation that looks like a case or a gate is valid.
func TestDocumentedCases(t *testing.T) {
	for _, p := range pages(t) {
		for _, code := range slices.Concat(p.inline(), p.lines()) {
			if err := documented(code); err != nil {
				t.Errorf("%s: `%s`: %v", p.name, code, err)
			}
		}
	}
}

// documented returns an error if code looks like a gate or a case and is invalid.
func documented(code string) error {
	if regexp.MustCompile(`^\S*/\S* .*[<>]= `).MatchString(code) && !strings.Contains(code, "--") {
		gate, _, _ := strings.Cut(code, "   ") // an explanation follows
		_, err := compare.ParseGate(gate)
		return err
	}
	begins := func(path string) bool { return strings.HasPrefix(code, path+"/") }
	var paths []string
	for _, f := range registry.Families() {
		paths = append(paths, f.Paths...)
	}
	if !slices.ContainsFunc(paths, begins) || strings.ContainsAny(code, " <…*") || strings.Contains(code, "RESOURCE") {
		return nil
	}
	_, err := registry.Families().Parse(code, "definition")
	return err
}
