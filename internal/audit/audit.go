// Package audit finds implausible numbers, our own, imported or published. Each rule is a small pure function with a
// name, and returns findings with the numbers that it saw.
//
// It stands between result and compare in the data flow. It changes no number and decides no verdict; its findings tell
// a reader what to check before relying on a number.
package audit

import "github.com/knotmeter/knotmeter/internal/result"

// A Severity is how much a finding calls a number into question.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the number cannot be what it claims to be
	Warning Severity = "warning" // the number, or a conclusion from it, needs an explanation
	Note    Severity = "note"    // useful context for the number
)

// Severities lists the severities, the gravest first.
var Severities = []Severity{Error, Warning, Note}

// A Finding is something implausible about the numbers that it names. A field is empty if the finding is about more
// than one value of it.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Case     string   `json:"case"`
	Target   string   `json:"target"`
	Metric   string   `json:"metric"`
	Runs     []string `json:"runs,omitempty"`  // ids of the runs concerned, if not all
	Place    string   `json:"place,omitempty"` // file and line, for tables
	Saw      string   `json:"saw"`             // the observation with its numbers; a sentence
	Why      string   `json:"why"`             // why it matters; a sentence
	More     string   `json:"more,omitempty"`  // where to read more
}

// An Unread is a cell of a table that looks like a figure and was not read.
type Unread struct {
	Place  string `json:"place"`  // file and line
	Column string `json:"column"` // its header
	Text   string `json:"text"`
	Reason string `json:"reason"` // a phrase
}

// Evidence is the input of an audit. A cell of a published table is a run with the cell's value, and with facts for
// what the table states about it.
type Evidence struct {
	result.Results
	Source string // file or directory of the results
	Seen   *Seen  // numbers of the sources that were examined before it, to which its own are added; nil: none
}
