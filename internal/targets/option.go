package targets

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
)

// An Option is an option of a kind of target, given after its name: lab:vxlan?mtu=9000.
type Option struct {
	Name    string
	Example string // value, or a placeholder: NAME, FILE
	Help    string
	Value   Value
	// Needs is an option, as NAME or NAME=VALUE, that must be given with this one; may be empty.
	Needs string
	// Field is the name in experiment files, where the option applies to all targets of the kind; empty: none.
	Field string
	// Refused is the reason why the option is refused, though users know it from other programs. It is not listed.
	Refused error
	// Check returns nil for a valid value, otherwise an error that describes valid values.
	Check func(value string) error
}

// A Value is the type of an option's value.
type Value int

// Types of values.
const (
	Text     Value = iota
	Switch         // yes or no
	List           // several texts, joined by [JoinList]
	File           // the name of a file
	Document       // the name of a YAML file, or the YAML itself, in braces
)

// String returns the option with an example of its value.
func (o Option) String() string { return o.Name + "=" + o.Example }

// About returns the help, with the option that it needs.
func (o Option) About() string {
	if o.Needs == "" {
		return o.Help
	}
	return o.Help + "; needs " + o.Needs
}

// File returns the name of the file that a value names; empty if it names none.
func (o Option) File(value string) string {
	if o.Value == File || o.Value == Document && !strings.HasPrefix(value, "{") {
		return value
	}
	return ""
}

// label is an option of every target. [result.Spec.Label] reads it.
var label = Option{
	Name: "label", Example: "NAME", Help: "name of the target in all output",
	Check: func(string) error { return nil },
}

// A Setting is an option and the function that stores its value in a C.
type Setting[C any] struct {
	Option
	Set func(c *C, value string) error
}

// NewSetting returns a setting whose value parse stores in a field of a C. An error of parse describes valid values.
func NewSetting[C, T any](o Option, field func(*C) *T, parse func(value string) (T, error)) Setting[C] {
	return Setting[C]{o, func(c *C, value string) (err error) {
		*field(c), err = parse(value)
		return err
	}}
}

// GivesAny reports whether the text of a target gives at least one of the settings.
func GivesAny[C any](spec result.Spec, settings []Setting[C]) bool {
	return slices.ContainsFunc(settings, func(s Setting[C]) bool {
		_, given := spec.Options[s.Name]
		return given
	})
}

// AnyText returns the text itself.
func AnyText(value string) (string, error) { return value, nil }

// CheckedText returns a parser that returns the text itself, with the error of check.
func CheckedText(check func(string) error) func(string) (string, error) {
	return func(value string) (string, error) { return value, check(value) }
}

// Choice returns a parser of two words: false for the first, true for the second, else an error.
func Choice(first, second string) func(string) (bool, error) {
	return func(value string) (bool, error) {
		if value != first && value != second {
			return false, fmt.Errorf("it is %s or %s", first, second)
		}
		return value == second, nil
	}
}

// YesOrNo parses the value of a [Switch].
func YesOrNo(value string) (bool, error) { return Choice("no", "yes")(value) }

// Options returns the options of settings, and the label option.
func Options[C any](settings []Setting[C]) []Option {
	var list []Option
	for _, s := range settings {
		s.Check = func(value string) error { return s.Set(new(C), value) }
		list = append(list, s.Option)
	}
	return append(list, label)
}

// Within converts settings of a P to settings of a C; part returns the P of a C.
func Within[C, P any](part func(*C) *P, settings []Setting[P]) []Setting[C] {
	var list []Setting[C]
	for _, s := range settings {
		list = append(list, Setting[C]{s.Option, func(c *C, value string) error { return s.Set(part(c), value) }})
	}
	return list
}

// Read stores the options of a target in c. Every error Is [result.ErrSpec] and names the option.
func Read[C any](spec result.Spec, settings []Setting[C], c *C) error {
	options := Options(settings)
	if err := checkKnown(spec, options); err != nil {
		return err
	}
	for _, s := range settings {
		value, given := spec.Options[s.Name]
		if !given {
			continue
		}
		if err := s.Set(c, value); err != nil {
			return fmt.Errorf("%w: %s: option %s=%s: %w", result.ErrSpec, spec.Label(), s.Name, value, err)
		}
	}
	return checkNeeds(spec, options)
}

// Image returns a parser of references of container images; example is for its error. It checks the characters only.
func Image(example string) func(string) (string, error) {
	return CheckedText(func(value string) error {
		if !imagePattern.MatchString(value) {
			return fmt.Errorf("it is no image, such as %s", example)
		}
		return nil
	})
}

var imagePattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._:/@-]*$`)

// JoinList joins texts by commas to the value of an option. It escapes commas and backslashes in a text by a backslash.
func JoinList(list []string) string {
	var escaped []string
	for _, text := range list {
		escaped = append(escaped, strings.NewReplacer(`\`, `\\`, ",", `\,`).Replace(text))
	}
	return strings.Join(escaped, ",")
}

// SplitList splits a value of [JoinList] into its texts.
func SplitList(text string) []string {
	list := []string{""}
	escaped := false
	for i := range len(text) {
		last := &list[len(list)-1]
		switch {
		case escaped:
			*last += text[i : i+1]
			escaped = false
		case text[i] == '\\':
			escaped = true
		case text[i] == ',':
			list = append(list, "")
		default:
			*last += text[i : i+1]
		}
	}
	return list
}

// checkKnown returns an error if an option is unknown or refused. The error does not contain the value of a refused
// option, which may be a secret.
func checkKnown(s result.Spec, options []Option) error {
	var known []string
	for _, o := range options {
		_, given := s.Options[o.Name]
		switch {
		case o.Refused == nil:
			known = append(known, o.Name)
		case given:
			return fmt.Errorf("%w: %s:%s: option %s: %w", result.ErrSpec, s.Kind, s.Name, o.Name, o.Refused)
		}
	}
	slices.Sort(known)
	for _, key := range slices.Sorted(maps.Keys(s.Options)) {
		if !slices.Contains(known, key) {
			return fmt.Errorf("%w: %q: %s targets have no option %q; there are %s",
				result.ErrSpec, s.Text, s.Kind, key, prose.Choices(key, known))
		}
	}
	return nil
}

// checkNeeds returns an error if an option is given without the one that it needs.
func checkNeeds(s result.Spec, options []Option) error {
	for _, o := range options {
		if _, given := s.Options[o.Name]; given && !satisfies(s, o.Needs) {
			return fmt.Errorf("%w: %s: option %s needs %s too", result.ErrSpec, s.Label(), o.Name, o.Needs)
		}
	}
	return nil
}

// satisfies reports whether the target has an option, given as NAME or NAME=VALUE; an empty one is always satisfied.
func satisfies(s result.Spec, option string) bool {
	name, wanted, valued := strings.Cut(option, "=")
	value, given := s.Options[name]
	return option == "" || given && (!valued || value == wanted)
}
