package lab

import (
	"errors"
	"fmt"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A Feature is something of the kernel that not every kernel has, and what the lab needs it for.
type Feature struct {
	Name   string // ipvlan
	Use    string // what needs it: "lab:ipvlan"
	Remedy string // what would change it, if it is missing
	// Try tries it, in a scratch namespace that is thrown away afterwards, with the three answers of Prober.Probe.
	Try func(e *Env) error
}

// The answers to whether a kernel has a feature.
const (
	Yes     = "yes"
	No      = "no"
	Unknown = "could not tell"
)

// A Finding is what was found out about a feature.
type Finding struct {
	Name   string `json:"name"`
	Use    string `json:"use"`
	Answer string `json:"answer"`           // Yes, No, Unknown
	Reason string `json:"reason,omitempty"` // of No and Unknown
	Remedy string `json:"remedy,omitempty"` // of No
}

// finding is the answer that an error is.
func (f Feature) finding(err error) Finding {
	found := Finding{Name: f.Name, Use: f.Use, Answer: Yes}
	switch {
	case errors.Is(err, result.ErrNotSupported):
		found.Answer, found.Reason, found.Remedy = No, err.Error(), f.Remedy
	case err != nil:
		found.Answer, found.Reason = Unknown, err.Error()
	}
	return found
}

// String is the finding in one line.
func (f Finding) String() string {
	text := fmt.Sprintf("%s: %s", f.Name, f.Answer)
	if f.Reason != "" {
		text += ": " + f.Reason
	}
	if f.Remedy != "" {
		text += "; " + f.Remedy
	}
	return text
}
