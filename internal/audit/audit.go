// Package audit looks for what is implausible in numbers, ours, imported or published: rules that
// are small and pure, each with a name, and what each of them saw.
//
// It stands between result and compare in the data flow. It changes no number and decides no
// verdict; it says what a reader should know before believing one.
package audit

import "github.com/knotmeter/knotmeter/internal/result"

// A Severity says how much of a number is left after a finding.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the number cannot be what it says it is
	Warning Severity = "warning" // the number, or what is concluded from it, needs an explanation
	Note    Severity = "note"    // good to know while reading it
)

// Severities are the kinds of findings, the gravest first.
var Severities = []Severity{Error, Warning, Note}

// A Finding is something implausible, beside the numbers that it touches. Empty fields mean that it
// is about more than one.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Case     string   `json:"case"`
	Target   string   `json:"target"`
	Metric   string   `json:"metric"`
	Runs     []string `json:"runs,omitempty"`  // ids of the runs it is about, if not about all
	Place    string   `json:"place,omitempty"` // file and line, of a table
	Saw      string   `json:"saw"`             // with the numbers; a sentence
	Why      string   `json:"why"`             // it matters; a sentence
	More     string   `json:"more,omitempty"`  // where to read more
}

// Evidence is what is audited. A cell of a published table is a run there, with its value, and with
// facts for what the table says of it.
type Evidence struct {
	result.Results
	Source string // file or directory that it is from
}
