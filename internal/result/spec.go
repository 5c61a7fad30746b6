package result

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// ErrSpec is wrapped by errors about an invalid text of a target.
var ErrSpec = errors.New("invalid target")

// A Spec is the parsed text of a target: lab:vxlan?mtu=9000&label=jumbo.
type Spec struct {
	Kind    string // lab, kube, local
	Name    string // vxlan, a context
	Options map[string]string
	Text    string // as given
}

// SpecOf parses a text that was accepted before. If the text is not a valid target, only Text is set.
func SpecOf(text string) Spec {
	s, err := ParseSpec(text)
	if err != nil {
		return Spec{Text: text}
	}
	return s
}

// String returns the text of the target.
func (s Spec) String() string { return s.Text }

// MarshalText returns the text of the target, which experiment.json holds.
func (s Spec) MarshalText() ([]byte, error) { return []byte(s.Text), nil }

// UnmarshalText is the inverse of MarshalText; it returns no error.
func (s *Spec) UnmarshalText(text []byte) error {
	*s = SpecOf(string(text))
	return nil
}

// ParseSpec parses the text of a target. It does not interpret the options, which depend on the kind. The error Is
// [ErrSpec].
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

// parseQuery parses options like url.ParseQuery, but keeps "+", and "%" unless it begins an escape (loss=1%), and
// returns an error if an option is given twice.
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

// unescape decodes escapes like url.PathUnescape, but keeps invalid ones.
func unescape(text string) string {
	return escapePattern.ReplaceAllStringFunc(text, func(escape string) string {
		char, _ := url.PathUnescape(escape)
		return char
	})
}

var escapePattern = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// Label returns the target's name in all output: its label option, else its text.
func (s Spec) Label() string {
	if l := s.Options["label"]; l != "" {
		return l
	}
	return s.Text
}

// Deploy is the value of an application's option that makes the target deploy the application for each block.
const Deploy = "deploy"

// Deploys reports whether the target deploys an application.
func (s Spec) Deploys(application string) bool { return s.Options[application] == Deploy }

// With returns the target with options added that its text does not give. The target keeps its label.
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
		with.Text += separator(with.Text) + key + "=" + valueEscaper.Replace(with.Options[key])
	}
	return with
}

// Set returns the target with an option set to a value.
func (s Spec) Set(key, value string) Spec {
	set := Spec{Kind: s.Kind, Name: s.Name, Text: s.Kind + ":" + s.Name, Options: maps.Clone(s.Options)}
	if set.Options == nil {
		set.Options = map[string]string{}
	}
	set.Options[key] = value
	for _, name := range slices.Sorted(maps.Keys(set.Options)) {
		set.Text += separator(set.Text) + name + "=" + valueEscaper.Replace(set.Options[name])
	}
	return set
}

// valueEscaper escapes the value of an option for the text of a target.
var valueEscaper = strings.NewReplacer("%", "%25", "&", "%26")

// separator returns the text between a target and a further option.
func separator(text string) string {
	switch _, query, is := strings.Cut(text, "?"); {
	case !is:
		return "?"
	case query == "":
		return ""
	}
	return "&"
}
