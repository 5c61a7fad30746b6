package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/compare"
)

// writeJUnit writes a test case per gate and per primary comparison, for CI systems that show such files. A gate
// passes, is a failure, or is an error of type undecided if it is inconclusive. A comparison passes if it has a
// verdict, even if the target is worse, with its sentence in system-out. It is skipped if it is undecided or not
// measured, because a test without a result has not passed.
func writeJUnit(w io.Writer, in Input) error {
	c := in.Comparison
	suite := junitSuite{Name: "knotmeter " + c.Experiment, Time: fmt.Sprintf("%.3f", timingOf(in).Total)}
	if first := timingOf(in).First; !first.IsZero() {
		suite.Timestamp = first.UTC().Format(time.RFC3339)
	}
	for _, kv := range [][2]string{{"baseline", c.Baseline}, {"seed", fmt.Sprint(c.Seed)}, {"alpha", fmt.Sprint(c.Alpha)},
		{"delta", fmt.Sprint(c.Delta)}, {"summary", c.Summary}, {"scope", c.Scope}} {
		suite.Properties = append(suite.Properties, junitProperty{kv[0], kv[1]})
	}
	changes := sessionChanges(c)
	for _, s := range changes {
		suite.Properties = append(suite.Properties, junitProperty{"changed", s})
	}
	for _, sentence := range recordedWarnings(c) {
		suite.Properties = append(suite.Properties, junitProperty{"warning", sentence})
	}
	for _, g := range c.Gates {
		suite.Cases = append(suite.Cases, junitGate(g))
	}
	for _, r := range c.Primary() {
		suite.Cases = append(suite.Cases, junitRow(r, changes))
	}
	for _, n := range c.NotMeasured {
		suite.Cases = append(suite.Cases, junitCase{Class: n.Case,
			Name: n.Target, Skipped: &junitSkipped{"not measured: " + n.Reason}})
	}
	suite.count()
	text, err := xml.MarshalIndent(junitSuites{Suites: []junitSuite{suite}}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the comparison as XML: %w", err)
	}
	return write(w, xml.Header+string(text)+"\n")
}

// count sets the numbers of the suite.
func (s *junitSuite) count() {
	for _, t := range s.Cases {
		s.Tests++
		switch {
		case t.Failure != nil:
			s.Failures++
		case t.Error != nil:
			s.Errors++
		case t.Skipped != nil:
			s.Skipped++
		}
	}
}

// junitGate returns the test case of a gate.
func junitGate(g compare.Gated) junitCase {
	t := junitCase{Class: "gate", Name: strings.Join(nonEmpty(g.Gate, g.Case, g.Metric, g.Target), ", ")}
	switch g.Outcome {
	case compare.Failed:
		t.Failure = &junitProblem{Type: "gate", Message: g.Sentence}
	case compare.Open:
		t.Error = &junitProblem{Type: "undecided", Message: g.Sentence}
	default:
		t.Out = g.Sentence
	}
	return t
}

// junitRow returns the test case of a comparison.
func junitRow(r compare.Row, changes []string) junitCase {
	t := junitCase{
		Class: r.Case, Name: fmt.Sprintf("%s: %s against %s", r.Metric, r.Target, r.Baseline),
		Out: fmt.Sprintf("%s: %s %s, %d blocks. %s", verdictWithReason(r), change(r.Change), interval(r.CI), r.Blocks,
			r.Sentence),
	}
	for _, n := range slices.Concat(changes, notes(r)) {
		t.Out += "\n" + n
	}
	if r.Verdict == compare.Undecided {
		t.Skipped = &junitSkipped{"undecided: " + r.Sentence}
	}
	return t
}

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string          `xml:"name,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Skipped    int             `xml:"skipped,attr"`
	Time       string          `xml:"time,attr"` // seconds
	Timestamp  string          `xml:"timestamp,attr,omitempty"`
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitProblem `xml:"failure,omitempty"`
	Error   *junitProblem `xml:"error,omitempty"`
	Skipped *junitSkipped `xml:"skipped,omitempty"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitProblem struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}
