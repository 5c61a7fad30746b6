// Package parameter has tables of parameters, such as those of workloads: named values in texts like
// "tcp-rr:flows=4,rate=500". From one table follow parsing, defaults, limits, the canonical text, shell completion and
// the tables of the documentation.
package parameter

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/prose"
)

// A Parameter is a parameter of a W. The zero value of its field means that it is not given.
type Parameter[W any] struct {
	Name    string
	Of      string       // what has it, for readers; empty: everything that the table is about
	Has     func(W) bool // reports whether a W, whose other parameters may not be set yet, has it; nil: every W has it
	Values  string       // valid values, which complete "it has to be": 1 to 128
	Default string       // empty: there is none, or Help tells what happens without the parameter
	// DefaultOf returns the default of a W, and Default describes it to readers; nil: Default is the default of every W.
	DefaultOf func(W) string
	Help      string // what it sets, without full stop
	// Refused is why the parameter is refused, though users may expect it. It is in no list.
	Refused error
	// Set stores a value, or returns an error that describes valid values. Get returns it in canonical form, empty for
	// the zero value. Valid reports whether the value is in range. New makes all three.
	Set   func(*W, string) error
	Get   func(W) string
	Valid func(W) bool
}

// Values are the values of a parameter.
type Values[T any] struct {
	Valid  string // in words, as [Parameter.Values]
	Parse  func(text string) (T, error)
	Format func(T) string
	Is     func(T) bool // reports whether a value that Parse returns is valid; nil: all are
}

// New returns a parameter whose value is in a field of a W.
func New[W any, T comparable](p Parameter[W], field func(*W) *T, t Values[T]) Parameter[W] {
	var zero T
	valid := func(v T) bool { return t.Is == nil || t.Is(v) }
	p.Values = t.Valid
	p.Set = func(w *W, text string) error {
		v, err := t.Parse(text)
		if err != nil || !valid(v) {
			return errors.New("it has to be " + t.Valid)
		}
		*field(w) = v
		return nil
	}
	p.Get = func(w W) string {
		if v := *field(&w); v != zero {
			return t.Format(v)
		}
		return ""
	}
	p.Valid = func(w W) bool { return *field(&w) == zero || valid(*field(&w)) }
	return p
}

// A Schema is a table of the parameters of a W, in the order of its canonical text. Several may have one name if no W
// has more than one of them.
type Schema[W any] []Parameter[W]

// of returns the parameters that w has.
func (all Schema[W]) of(w W) Schema[W] {
	return slices.DeleteFunc(slices.Clone(all), func(p Parameter[W]) bool { return p.Has != nil && !p.Has(w) })
}

// Parse stores the parameters of a text such as "tcp-rr:flows=4,rate=500" in w, which is what the part before the colon
// names. Errors quote the text.
func (all Schema[W]) Parse(w *W, text string) error {
	what, list, given := strings.Cut(text, ":")
	if !given || list == "" {
		return nil
	}
	own := all.of(*w)
	var seen []string
	for pair := range strings.SplitSeq(list, ",") {
		name, value, is := strings.Cut(pair, "=")
		if !is {
			return fmt.Errorf("%q in %q is not key=value", pair, text)
		}
		if slices.Contains(seen, name) {
			return fmt.Errorf("%s is given twice in %q", name, text)
		}
		seen = append(seen, name)
		i := slices.IndexFunc(own, func(p Parameter[W]) bool { return p.Name == name })
		err := all.unknown(*w, what, name)
		switch {
		case i >= 0 && own[i].Refused != nil:
			err = own[i].Refused
		case i >= 0:
			err = own[i].Set(w, value)
		}
		if err != nil {
			return fmt.Errorf("%s in %q: %w", pair, text, err)
		}
	}
	return nil
}

// unknown returns the error about a parameter that w, which is named what, does not have.
func (all Schema[W]) unknown(w W, what, name string) error {
	var known []string
	for _, h := range all.HelpOf(w) {
		known = append(known, h.Name)
	}
	choices := what + " has no parameters"
	if len(known) > 0 {
		choices = what + " has " + prose.Choices(name, known)
	}
	for _, h := range all.Help() {
		if h.Name == name {
			return fmt.Errorf("it is a parameter of %s; %s", strings.ReplaceAll(h.Of, "`", ""), choices)
		}
	}
	return fmt.Errorf("there is no such parameter; %s", choices)
}

// Fill sets the parameters of w that are not given to their defaults.
func (all Schema[W]) Fill(w *W) {
	for _, p := range all.of(*w) {
		if text := p.defaultOf(*w); text != "" && p.Get(*w) == "" {
			if err := p.Set(w, text); err != nil {
				panic("a default is no valid value: " + err.Error())
			}
		}
	}
}

func (p Parameter[W]) defaultOf(w W) string {
	if p.DefaultOf != nil {
		return p.DefaultOf(w)
	}
	return p.Default
}

// Check returns an error that names a parameter of w that is out of range.
func (all Schema[W]) Check(w W) error {
	for _, p := range all.of(w) {
		if p.Refused == nil && !p.Valid(w) {
			return fmt.Errorf("%s=%s: it has to be %s", p.Name, p.Get(w), p.Values)
		}
	}
	return nil
}

// Text returns the canonical text of w that Parse reads; what is the part before the colon. Defaults are left out.
func (all Schema[W]) Text(what string, w W) string {
	separator := ":"
	for _, p := range all.of(w) {
		if p.Refused != nil {
			continue
		}
		if value := p.Get(w); value != "" && value != p.canonicalDefault(w) {
			what += separator + p.Name + "=" + value
			separator = ","
		}
	}
	return what
}

// canonicalDefault returns the default of w in the form of its canonical text.
func (p Parameter[W]) canonicalDefault(w W) string {
	text := p.defaultOf(w)
	if text != "" && p.Set(&w, text) == nil {
		return p.Get(w)
	}
	return text
}

// Help is what readers are told of a parameter.
type Help struct{ Name, Of, Values, Default, About string }

// Help returns what readers are told of the parameters.
func (all Schema[W]) Help() []Help {
	var list []Help
	for _, p := range all {
		if p.Refused == nil {
			list = append(list, Help{p.Name, p.Of, p.Values, p.Default, p.Help})
		}
	}
	return list
}

// HelpOf returns the parameters that w has.
func (all Schema[W]) HelpOf(w W) []Help { return all.of(w).Help() }
