package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/importer"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/store"
	"github.com/knotmeter/knotmeter/internal/unit"
	"github.com/knotmeter/knotmeter/internal/userfile"
)

// maxImport is the largest size of an imported file, in bytes.
const maxImport = 256 << 20

// importOptions are the flags of import.
type importOptions struct {
	importer.Options
	alpha, delta fraction
	facts        []string
	out, target  string
}

func newImport(s Streams, version string) *cobra.Command {
	o := importOptions{Options: importer.Options{Version: version, Families: registry.Families()},
		alpha: 0.05, delta: 0.02}
	c := &cobra.Command{
		Use:   "import FORMAT [TARGET=]FILE|DIR…",
		Short: "Turn other tools' output into a results directory",
		Long: `Turn the output of another tool into a results directory for compare, report and
audit. Each measurement is a run; there are no blocks, so verdicts are unpaired
and need six runs on each side. docs/importing.md has the details of each FORMAT:

` + formatLines() + `
TARGET= names the target of a file or directory. Without it the name is that of
the directory below DIR (DIR/TARGET/FILE), --target, DIR or FILE. The file tells
the path of a case, or --case does.`,
		Example: `  knotmeter import iperf3 native=run1.json vxlan=run2.json --out results/by-hand`,
		Args:    operands(2, -1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return withPrefix(importNames(), typed)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return o.run(c.Context(), s, args[0], args[1:])
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.out, "out", "", "`DIR` results directory to write; it must not exist, or be empty")
	flags.StringVar(&o.target, targetFlag, "", "`TARGET` target of files that name none")
	flags.StringVar(&o.Case, "case", "", "`PATH` path where the files tell none, such as pod-pod/other, "+
		"or the whole name of the only case")
	flags.StringVar(&o.Baseline, "baseline", "", "`TARGET` target to compare the others with (default: the first)")
	flags.StringArrayVar(&o.Primary, "primary", nil,
		"`PATTERN` cases that verdicts are about; repeated (default: all)")
	flags.Var(&o.alpha, "alpha", "`PROBABILITY` probability of a false 'different' among all primary comparisons")
	flags.Var(&o.delta, "delta", "`CHANGE` smallest change that matters")
	flags.StringArrayVar(&o.facts, "fact", nil,
		"`NAME=VALUE` fact that the files do not tell, such as workers=1300; repeated")
	completeFlag(c, targetFlag, nil) // any name is allowed
	return c
}

// run reads files of a format and writes a results directory.
func (o *importOptions) run(ctx context.Context, s Streams, format string, files []string) error {
	f, err := findImport(format)
	if err != nil {
		return err
	}
	debug.SetGCPercent(gcPercent)
	o.Now = time.Now()
	o.ID = store.NewID(o.Now)
	read, err := await(ctx, func() (importer.Import, error) {
		sources, err := findSources(files, o.target)
		if err != nil {
			return importer.Import{}, err
		}
		return importer.Read(f, sources, o.Options)
	})
	if err != nil {
		return err
	}
	if err := store.WriteWhole(ctx, o.out, read.Experiment, read.Facts, read.Runs); err != nil {
		return err
	}
	printImported(s, o.out, read)
	return nil
}

func formatLines() string {
	var b strings.Builder
	for _, f := range importer.Formats() {
		fmt.Fprintf(&b, "  %-16s %s\n", f.Name, f.About)
	}
	return b.String()
}

// importNames returns the names of the formats that import reads.
func importNames() []string {
	var names []string
	for _, f := range importer.Formats() {
		names = append(names, f.Name)
	}
	return names
}

func findImport(name string) (importer.Format, error) {
	for _, f := range importer.Formats() {
		if f.Name == name {
			return f, nil
		}
	}
	return importer.Format{}, fmt.Errorf("import reads no format %q; it reads %s",
		name, prose.Choices(name, importNames()))
}

// check checks the flags and sets the importer's options from them.
func (o *importOptions) check() error {
	o.Alpha, o.Delta = float64(o.alpha), float64(o.delta)
	if o.out == "" {
		return errors.New("--out: name the results directory to write")
	}
	if err := (result.Design{Alpha: o.Alpha, Delta: o.Delta}).Check(); err != nil {
		return fmt.Errorf("--%w", err)
	}
	for _, text := range o.facts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" || value == "" || name == audit.FactStatedByUser {
			return fmt.Errorf("--fact: %q is not NAME=VALUE", text)
		}
		if err := checkUnit(name, value); err != nil {
			return fmt.Errorf("--fact: %s: %w", text, err)
		}
		o.Facts = append(o.Facts, result.Fact{Name: name, Value: value})
	}
	if len(o.Facts) > 0 {
		o.Facts = append(o.Facts, statedFact(o.Facts))
	}
	return nil
}

// An operand is a file or directory to import, with the name of its target if it is known.
type operand struct {
	path, target string
	named        bool // as TARGET=PATH
	isDir        bool
}

func newOperand(arg, fallback string) (operand, error) {
	o := operand{path: arg, target: fallback}
	info, err := os.Stat(arg)
	if before, after, ok := strings.Cut(arg, "="); errors.Is(err, fs.ErrNotExist) && ok && before != "" {
		o = operand{path: after, target: before, named: true}
		info, err = os.Stat(after)
	}
	if err != nil {
		return o, fmt.Errorf("import: %w", err)
	}
	o.path, o.isDir = filepath.Clean(o.path), info.IsDir()
	return o, nil
}

// findSources reads the files that the arguments name, those of a directory in the order of their names. A file whose
// target is not named belongs to a target with the name of its directory. If all files are in one directory, its name
// may mean nothing and is not used.
func findSources(args []string, fallback string) ([]importer.Source, error) {
	var operands []operand
	severalDirs := false
	for _, arg := range args {
		o, err := newOperand(arg, fallback)
		if err != nil {
			return nil, err
		}
		if o.isDir && !o.named && slices.Contains(operands, o) {
			return nil, fmt.Errorf("import: %s is given twice", o.path)
		}
		operands = append(operands, o)
		severalDirs = severalDirs || o.isDir || filepath.Dir(o.path) != filepath.Dir(operands[0].path)
	}
	var sources []importer.Source
	for _, o := range operands {
		read := []importer.Source{{}}
		var err error
		switch {
		case o.isDir:
			read, err = walkSources(o.path, o.target, o.named)
		case o.target == "" && severalDirs:
			read[0], err = readSource(o.path, "", filepath.Dir(o.path))
		default:
			read[0], err = readSource(o.path, o.target, "")
		}
		if err != nil {
			return nil, err
		}
		sources = append(sources, read...)
	}
	return sources, nil
}

// directoryName returns the name of a directory, even if it is given as "." or "..".
func directoryName(dir string) string {
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	return filepath.Base(dir)
}

// walkSources reads all files below a directory, except hidden ones. Unless the user named the target, files in a
// subdirectory belong to a target with the name of that subdirectory of dir.
func walkSources(dir, name string, named bool) ([]importer.Source, error) {
	var sources []importer.Source
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("import: %w", err)
		}
		hidden := path != dir && strings.HasPrefix(d.Name(), ".")
		if hidden && d.IsDir() {
			return filepath.SkipDir
		}
		if d.IsDir() || hidden {
			return nil
		}
		from := ""
		if name == "" {
			from = dir
		}
		if rel, err := filepath.Rel(dir, path); err == nil && !named {
			if first, _, below := strings.Cut(filepath.ToSlash(rel), "/"); below {
				from = filepath.Join(dir, first)
			}
		}
		source, err := readSource(path, name, from)
		sources = append(sources, source)
		return err
	})
	if err == nil && len(sources) == 0 {
		err = fmt.Errorf("import: there is no file in %s", dir)
	}
	return sources, err
}

// readSource reads a file. If from is not empty, the target gets the name of that directory, otherwise the given name.
func readSource(path, name, from string) (importer.Source, error) {
	if from != "" {
		name = directoryName(from)
	}
	data, err := userfile.Read(path, maxImport)
	if err != nil {
		return importer.Source{}, fmt.Errorf("import: %w", err)
	}
	return importer.Source{Name: path, Target: name, From: from, Data: data}, nil
}

// A tally is what import prints of the runs.
type tally struct {
	total         int
	runs, invalid map[[2]string]int // by case and target
	doubts        []string          // why runs are invalid, and warnings about others; each once
	places        map[string]places // by doubt
}

// places are the first places of a doubt, and the number of all of them.
type places struct {
	first []string
	total int
}

// count counts runs. It keeps none, because a file may have a million.
func count(runs iter.Seq2[result.Run, []result.File]) tally {
	t := tally{runs: map[[2]string]int{}, invalid: map[[2]string]int{}, places: map[string]places{}}
	for r := range runs {
		key := [2]string{r.Case, r.Target}
		t.total++
		t.runs[key]++
		word := "warning"
		if !r.Valid() {
			word = "invalid"
			t.invalid[key]++
		}
		for _, w := range slices.Concat(r.Invalid, r.Warnings) {
			text := word + ": " + w.Text
			at, known := t.places[text]
			if !known {
				t.doubts = append(t.doubts, text)
			}
			if at.total++; len(at.first) < mostNamed {
				at.first = append(at.first, r.Fact("import.file")+", "+r.Fact("import.place"))
			}
			t.places[text] = at
		}
	}
	return t
}

// printImported prints the number of runs of each case and target.
func printImported(s Streams, out string, read importer.Import) {
	e, found := read.Experiment, count(read.Runs)
	fmt.Fprintf(s.Out, "%s: %s of %s on %s\n", out, unit.Plural(found.total, "run"),
		unit.Plural(len(e.Cases), "case"), unit.Plural(len(e.Targets), "target"))
	comparable := len(e.Targets) == 1
	for _, c := range e.Cases {
		var parts []string
		measured := 0
		for _, t := range e.Targets {
			key := [2]string{c.Name, t.Name}
			text := fmt.Sprintf("%s %d", t.Name, found.runs[key])
			if n := found.invalid[key]; n > 0 {
				text += fmt.Sprintf(" (%d invalid)", n)
			}
			parts = append(parts, text)
			measured += min(found.runs[key], 1)
		}
		comparable = comparable || measured > 1
		fmt.Fprintf(s.Out, "  %s (%s): %s\n", c.Name, c.Metric, strings.Join(parts, ", "))
	}
	found.printDoubts(s)
	if len(read.Unread) > 0 {
		fmt.Fprintf(s.Out, "%d of %s were not read: %s\n", len(read.Unread), unit.Plural(read.Figures, "figure"),
			prose.Plain(few(read.Unread, len(read.Unread))))
	}
	if !comparable {
		fmt.Fprintln(s.Out, "No case was measured on two targets, so that nothing can be compared.")
	}
}

// mostDoubts is the number of different warnings that import prints.
const mostDoubts = 8

// printDoubts prints why runs are invalid, and warnings about others.
func (t tally) printDoubts(s Streams) {
	for _, text := range t.doubts[:min(len(t.doubts), mostDoubts)] {
		at := t.places[text]
		fmt.Fprintf(s.Out, "  %s (%s)\n", prose.Plain(text), prose.Plain(few(at.first, at.total)))
	}
	if more := len(t.doubts) - mostDoubts; more > 0 {
		fmt.Fprintf(s.Out, "  and %s\n", unit.Plural(more, "other warning"))
	}
}

// mostNamed is the number of texts that few names.
const mostNamed = 5

// few joins the first of a number of texts.
func few(texts []string, total int) string {
	texts = texts[:min(len(texts), mostNamed)]
	if more := total - len(texts); more > 0 {
		return strings.Join(texts, ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(texts, ", ")
}
