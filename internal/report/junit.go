package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"

	"github.com/knotmeter/knotmeter/internal/compare"
)

// JUnit writes a test case per primary comparison, for CI systems that show such files. A comparison
// records, it does not judge: different passes whichever way it went, its sentence in system-out;
// what is undecided or not measured is skipped, because a test that could not tell has not passed.
func JUnit(w io.Writer, in Input) error {
	c := in.Comparison
	suite := junitSuite{Name: "knotmeter " + c.Experiment, Time: fmt.Sprintf("%.3f", timingOf(in).Total)}
	if first := timingOf(in).First; !first.IsZero() {
		suite.Timestamp = first.UTC().Format(time.RFC3339)
	}
	for _, kv := range [][2]string{{"baseline", c.Baseline}, {"seed", fmt.Sprint(c.Seed)}, {"alpha", fmt.Sprint(c.Alpha)},
		{"delta", fmt.Sprint(c.Delta)}, {"summary", c.Summary}, {"scope", c.Scope}} {
		suite.Properties = append(suite.Properties, junitProperty{kv[0], kv[1]})
	}
	for _, r := range c.Primary() {
		suite.Cases = append(suite.Cases, junitRow(r))
	}
	for _, n := range c.NotMeasured {
		suite.Cases = append(suite.Cases, junitCase{Class: n.Case, Name: n.Target, Skipped: &junitSkipped{"not measured: " + n.Reason}})
	}
	for _, t := range suite.Cases {
		suite.Tests++
		if t.Skipped != nil {
			suite.Skipped++
		}
	}
	text, err := xml.MarshalIndent(junitSuites{Suites: []junitSuite{suite}}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the comparison as XML: %w", err)
	}
	return write(w, xml.Header+string(text)+"\n")
}

func junitRow(r compare.Row) junitCase {
	t := junitCase{
		Class: r.Case, Name: fmt.Sprintf("%s: %s against %s", r.Metric, r.Target, r.Baseline),
		Out: fmt.Sprintf("%s: %s %s, %d blocks. %s", word(r), change(r.Change), interval(r.CI), r.Blocks, r.Sentence),
	}
	for _, n := range notes(r) {
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
	Skipped *junitSkipped `xml:"skipped,omitempty"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}
