package lab

import (
	"errors"
	"fmt"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A Feature is a feature that not every kernel has, and its use in the lab.
type Feature struct {
	Name   string // macvlan
	Use    string // what needs it: "lab:macvlan"
	Remedy string // how to get it if it is missing
	// Try tries the feature in a scratch namespace that is removed afterwards. It returns what the Probe of an [Op] would.
	Try func(e *Env) error
}

// Values of [Finding.Answer].
const (
	Yes     = "yes"
	No      = "no"
	Unknown = "could not tell"
)

// A Finding reports whether the kernel has a feature.
type Finding struct {
	Name   string `json:"name"`
	Use    string `json:"use"`
	Answer string `json:"answer"`           // Yes, No, Unknown
	Reason string `json:"reason,omitempty"` // of No and Unknown
	Remedy string `json:"remedy,omitempty"` // of No
}

// finding returns the finding for an error of Try.
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

// String returns the finding in one line.
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
