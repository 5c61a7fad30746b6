package targets

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// An Option can be set for a target, after its name: lab:vxlan?mtu=9000.
type Option struct {
	Name    string
	Example string // of a value, or a word that stands for one: NAME, FILE
	Help    string
	Value   Value
	// Needs is another option, as NAME or NAME=VALUE, without which this one is refused.
	Needs string
	// Field is the option's name in experiment files, where it holds for all targets of the kind. Unless it is a document,
	// it is a flag too, of the option's name; Short is the flag's letter.
	Field, Short string
	// Planned says that the option is a part of the experiment, so that a resumed one has its own already. Others are
	// about the way to a target.
	Planned bool
	// Unnamed says that the name of a target may say the same: the flag is for targets that have none.
	Unnamed bool
	// Refused is why the option must not be given, although users know it from elsewhere; it is listed nowhere.
	Refused error
	// Check returns an error that says what a value has to be.
	Check func(value string) error
}

// Value is what an option takes.
type Value int

const (
	Text     Value = iota
	Switch         // yes or no; its flag needs no value
	List           // texts, which [JoinList] makes one of; its flag is repeated
	File           // the name of a file
	Document       // the name of a YAML file, or the YAML itself, in braces
)

// String is the option with an example of its value.
func (o Option) String() string { return o.Name + "=" + o.Example }

// Argument is what the option's flag takes, for readers: nothing if it is a [Switch], of a [List] one of its texts.
func (o Option) Argument() string {
	if o.Value == Switch {
		return ""
	}
	return strings.TrimSuffix(o.Example, ",…")
}

// About is the help, with what the option needs.
func (o Option) About() string {
	if o.Needs == "" {
		return o.Help
	}
	return o.Help + "; needs " + o.Needs
}

// File is the name of the file that a value names; empty if it names none.
func (o Option) File(value string) string {
	if o.Value == File || o.Value == Document && !strings.HasPrefix(value, "{") {
		return value
	}
	return ""
}

// HasFlag reports whether there is a flag for the option. One that is refused has a flag to say so.
func (o Option) HasFlag() bool { return o.Refused != nil || o.Field != "" && o.Value != Document }

// label is an option of every target. It is read by [Spec.Label].
var label = Option{
	Name: "label", Example: "NAME", Help: "name of the target in all output",
	Check: func(string) error { return nil },
}

// A Setting is an option with what sets it in a C.
type Setting[C any] struct {
	Option
	Set func(c *C, value string) error
}

// NewSetting is an option that a parser reads into a field of a C. An error of the parser says what a value has to be.
func NewSetting[C, T any](o Option, field func(*C) *T, parse func(value string) (T, error)) Setting[C] {
	return Setting[C]{o, func(c *C, value string) (err error) {
		*field(c), err = parse(value)
		return err
	}}
}

// GivesAny reports whether a target gives one of the settings.
func GivesAny[C any](spec Spec, settings []Setting[C]) bool {
	return slices.ContainsFunc(settings, func(s Setting[C]) bool {
		_, given := spec.Options[s.Name]
		return given
	})
}

// AnyText parses any text.
func AnyText(value string) (string, error) { return value, nil }

// CheckedText parses a text that a check finds nothing wrong with.
func CheckedText(check func(string) error) func(string) (string, error) {
	return func(value string) (string, error) { return value, check(value) }
}

// Choice parses the second of two words as true.
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

// Options are those of settings, and the label.
func Options[C any](settings []Setting[C]) []Option {
	var list []Option
	for _, s := range settings {
		s.Check = func(value string) error { return s.Set(new(C), value) }
		list = append(list, s.Option)
	}
	return append(list, label)
}

// Within are the settings of a part of a C.
func Within[C, P any](part func(*C) *P, settings []Setting[P]) []Setting[C] {
	var list []Setting[C]
	for _, s := range settings {
		list = append(list, Setting[C]{s.Option, func(c *C, value string) error { return s.Set(part(c), value) }})
	}
	return list
}

// Read sets in c what the options of a target say. Every error Is [ErrSpec] and names the option.
func Read[C any](spec Spec, settings []Setting[C], c *C) error {
	options := Options(settings)
	if err := spec.check(options); err != nil {
		return err
	}
	for _, s := range settings {
		value, given := spec.Options[s.Name]
		if !given {
			continue
		}
		if err := s.Set(c, value); err != nil {
			return fmt.Errorf("%w: %s: option %s=%s: %w", ErrSpec, spec.Label(), s.Name, value, err)
		}
	}
	return spec.needs(options)
}

// Image parses the reference of a container image, such as the example. It refuses what no runtime would take; the
// runtime knows the rest.
func Image(example string) func(string) (string, error) {
	return CheckedText(func(value string) error {
		if !imageRef.MatchString(value) {
			return fmt.Errorf("it is no image, such as %s", example)
		}
		return nil
	})
}

var imageRef = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._:/@-]*$`)

// JoinList makes a list the value of an option, with commas between; one within a text is written as \, there.
func JoinList(list []string) string {
	var escaped []string
	for _, text := range list {
		escaped = append(escaped, strings.NewReplacer(`\`, `\\`, ",", `\,`).Replace(text))
	}
	return strings.Join(escaped, ",")
}

// SplitList is the inverse of [JoinList].
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
