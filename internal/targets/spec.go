package targets

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/prose"
)

// ErrSpec is what every error about the text of a target is.
var ErrSpec = errors.New("invalid target")

// A Spec is the text of a target, taken apart: lab:vxlan?mtu=9000&label=jumbo.
type Spec struct {
	Kind    string // lab, kube, local
	Name    string // vxlan, a context
	Options map[string]string
	Text    string // as given
}

// ParseSpec takes the text of a target apart. What the options mean is the kind's own matter.
func ParseSpec(text string) (Spec, error) {
	kind, rest, ok := strings.Cut(text, ":")
	if !ok || kind == "" {
		return Spec{}, fmt.Errorf("%w: %q is not kind:name, such as lab:vxlan", ErrSpec, text)
	}
	name, query, _ := strings.Cut(rest, "?")
	values, err := parseQuery(query)
	if err != nil {
		return Spec{}, fmt.Errorf("%w: %q: %w", ErrSpec, text, err)
	}
	return Spec{Kind: kind, Name: name, Options: values, Text: text}, nil
}

// parseQuery is url.ParseQuery, but "+" and a "%" that begins no escape stay themselves (loss=1%), and an option given
// twice is an error.
func parseQuery(query string) (map[string]string, error) {
	options := map[string]string{}
	if query == "" {
		return options, nil
	}
	for part := range strings.SplitSeq(query, "&") {
		key, val, ok := strings.Cut(part, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("option %q is not key=value", part)
		}
		if _, twice := options[key]; twice {
			return nil, fmt.Errorf("option %s is given twice", key)
		}
		options[key] = unescape(val)
	}
	return options, nil
}

// unescape decodes the escapes of a text, as url.PathUnescape does, and leaves what is none.
func unescape(text string) string {
	return escapes.ReplaceAllStringFunc(text, func(escape string) string {
		char, _ := url.PathUnescape(escape)
		return char
	})
}

var escapes = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// Label is the target's name in all output: its label option, else its text.
func (s Spec) Label() string {
	if l := s.Options["label"]; l != "" {
		return l
	}
	return s.Text
}

// Deploy is the value of an application's option for one that the target makes for each block.
const Deploy = "deploy"

// Deploys reports whether the target makes an application that is asked.
func (s Spec) Deploys(application string) bool { return s.Options[application] == Deploy }

// check finds options that there are not, or that are refused. No error repeats the value of one that is refused.
func (s Spec) check(options []Option) error {
	var known []string
	for _, o := range options {
		_, given := s.Options[o.Name]
		switch {
		case o.Refused == nil:
			known = append(known, o.Name)
		case given:
			return fmt.Errorf("%w: %s:%s: option %s: %w", ErrSpec, s.Kind, s.Name, o.Name, o.Refused)
		}
	}
	slices.Sort(known)
	for _, key := range slices.Sorted(maps.Keys(s.Options)) {
		if !slices.Contains(known, key) {
			return fmt.Errorf("%w: %q: %s targets have no option %q; there are %s",
				ErrSpec, s.Text, s.Kind, key, prose.Choices(key, known))
		}
	}
	return nil
}

// needs finds an option without the one that it needs.
func (s Spec) needs(options []Option) error {
	for _, o := range options {
		if _, given := s.Options[o.Name]; given && !s.has(o.Needs) {
			return fmt.Errorf("%w: %s: option %s needs %s too", ErrSpec, s.Label(), o.Name, o.Needs)
		}
	}
	return nil
}

// has says whether an option is given, by its name or with its value; nothing always is.
func (s Spec) has(option string) bool {
	name, wanted, valued := strings.Cut(option, "=")
	value, given := s.Options[name]
	return option == "" || given && (!valued || value == wanted)
}

// With adds the options that the text does not give. The target keeps its label.
func (s Spec) With(options map[string]string) Spec {
	with := Spec{Kind: s.Kind, Name: s.Name, Text: s.Text, Options: maps.Clone(s.Options)}
	if with.Options == nil {
		with.Options = map[string]string{}
	}
	var added []string
	for _, key := range slices.Sorted(maps.Keys(options)) {
		if _, given := s.Options[key]; !given {
			added = append(added, key)
			with.Options[key] = options[key]
		}
	}
	if _, given := s.Options["label"]; !given && len(added) > 0 {
		added = append(added, "label")
		with.Options["label"] = s.Label()
	}
	for _, key := range added {
		with.Text += separator(with.Text) + key + "=" + escaping.Replace(with.Options[key])
	}
	return with
}

// Set is the target with another value of an option, or with one more.
func (s Spec) Set(key, value string) Spec {
	set := Spec{Kind: s.Kind, Name: s.Name, Text: s.Kind + ":" + s.Name, Options: maps.Clone(s.Options)}
	if set.Options == nil {
		set.Options = map[string]string{}
	}
	set.Options[key] = value
	for _, name := range slices.Sorted(maps.Keys(set.Options)) {
		set.Text += separator(set.Text) + name + "=" + escaping.Replace(set.Options[name])
	}
	return set
}

// escaping writes the value of an option so that it can be read again.
var escaping = strings.NewReplacer("%", "%25", "&", "%26")

func separator(text string) string {
	switch _, query, is := strings.Cut(text, "?"); {
	case !is:
		return "?"
	case query == "":
		return ""
	}
	return "&"
}
