package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/knotmeter/knotmeter/internal/prose"
)

// TestHelpFitsAScreen checks that the help of every command fits a screen, and no line of --help or --help-all is too
// wide.
func TestHelpFitsAScreen(t *testing.T) {
	const lines = 40
	for _, c := range commands(newRoot(Streams{}, "test")) {
		short, whole := helpText(c, false), helpText(c, true)
		if n := strings.Count(short, "\n"); n > lines {
			t.Errorf("%s --help has %d lines:\n%s", c.CommandPath(), n, short)
		}
		for line := range strings.Lines(short + whole) {
			if line = strings.TrimSuffix(line, "\n"); prose.Width(line) > prose.Columns {
				t.Errorf("%s --help: a line of %d columns: %s", c.CommandPath(), prose.Width(line), line)
			}
		}
	}
}

// TestHelpHasEveryFlag checks that --help-all shows every flag, under a heading and with the name of its argument.
func TestHelpHasEveryFlag(t *testing.T) {
	const often = 12 // flags of run and plan
	for _, c := range commands(newRoot(Streams{}, "test")) {
		short, whole := helpText(c, false), helpText(c, true)
		if n := len(shownFlags(c, false)); n > often {
			t.Errorf("%s --help shows %d flags", c.CommandPath(), n)
		}
		if less := len(shownFlags(c, false)) < len(shownFlags(c, true)); less != strings.Contains(short, "--help-all") {
			t.Errorf("%s --help leaves flags out: %v, and names --help-all: %v", c.CommandPath(), less, !less)
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == helpAll {
				return
			}
			if !strings.Contains(whole, "--"+f.Name) {
				t.Errorf("%s --help-all leaves out --%s", c.CommandPath(), f.Name)
			}
			if argument := strings.Join(f.Annotations[argumentOf], ""); argument == "" && f.Value.Type() != "bool" {
				t.Errorf("%s --help-all does not show what --%s takes", c.CommandPath(), f.Name)
			}
			if c.Name() == "run" && strings.Join(f.Annotations[headingOf], "") == "" && f.Name != "help" {
				t.Errorf("--%s has no heading", f.Name)
			}
		})
	}
}

// TestHelpAllNeedsNothingElse checks that --help-all works even if the rest of the command line is wrong.
func TestHelpAllNeedsNothingElse(t *testing.T) {
	for _, tt := range []struct{ line, flag string }{
		{"run --help-all", "--parallel"}, {"doctor nothing --help-all --bad", "--rbac"},
		{"report --help-all", "--format FORMAT"}, // nothing is rare
	} {
		status, out := execute(t, strings.Fields(tt.line)...)
		if status != statusDone || !strings.Contains(out, tt.flag) {
			t.Errorf("%s: status %d\n%s", tt.line, status, out)
		}
	}
}

func TestFlagTerm(t *testing.T) {
	c := &cobra.Command{Use: "test"}
	f := c.Flags()
	f.StringP("output", "o", "table", "`FORMAT` print as this")
	f.Bool("all", false, "show it all")
	f.String("rbac", "", "`SCOPE` rights")
	f.Lookup("rbac").NoOptDefVal = "narrow"
	arrangeFlags(c)
	want := "Flags:\n  -o, --output FORMAT  print as this (default: table)\n      --all            show it all\n" +
		"      --rbac[=SCOPE]   rights\n"
	if got := prose.List(flagSections(c, true)); got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
}
