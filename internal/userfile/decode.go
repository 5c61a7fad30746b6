package userfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	nodes "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// An Error is what is wrong with what a file holds.
type Error struct {
	Line int // 0 is unknown
	Text string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Text
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Text)
}

// noises begin the libraries' errors and say nothing to users.
var noises = []string{
	"error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: ", "json: ", "yaml: ",
}

// Decode decodes YAML strictly: what v has no field for, or has another type for, is an error that names both
// the line and the field.
func Decode(data []byte, v any) error {
	err := yaml.UnmarshalStrict(data, v)
	if err == nil {
		return nil
	}
	if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		return &Error{lineOf(data, wrong.Field, wrong.Value), mistyped(wrong)}
	}
	text := err.Error()
	for _, noise := range noises {
		text = strings.TrimPrefix(text, noise)
	}
	if found := unknownField.FindStringSubmatch(text); found != nil {
		return &Error{lineOf(data, found[1], ""), text}
	}
	if found := syntax.FindStringSubmatch(text); found != nil {
		line, _ := strconv.Atoi(found[1]) // digits
		return &Error{line, found[2]}
	}
	return &Error{Text: text}
}

var (
	unknownField = regexp.MustCompile(`^unknown field "([^"]+)"`)
	syntax       = regexp.MustCompile(`(?s)^(?:unmarshal errors:\s+)?line (\d+): (.*)$`)
)

// mistyped says which field has what instead of what.
func mistyped(wrong *json.UnmarshalTypeError) string {
	want := "another value"
	switch kind := wrong.Type.Kind(); {
	case kind == reflect.String:
		want = "text"
	case kind == reflect.Bool:
		want = "true or false"
	case kind == reflect.Float32 || kind == reflect.Float64:
		want = "a number"
	case kind >= reflect.Int && kind <= reflect.Int64:
		want = "a whole number"
	case kind >= reflect.Uint && kind <= reflect.Uintptr:
		want = "a whole number from 0 on"
	case kind == reflect.Slice || kind == reflect.Array:
		want = "a list"
	case kind == reflect.Struct || kind == reflect.Map:
		want = "fields"
	}
	have, number, _ := strings.Cut(wrong.Value, " ")
	if word, known := words[have]; known {
		have = strings.TrimSpace(word + " " + number)
	}
	if wrong.Field == "" {
		return fmt.Sprintf("want %s, not %s", want, have)
	}
	return fmt.Sprintf("%s: want %s, not %s", wrong.Field, want, have)
}

// What JSON's values are called, to users and in YAML's nodes. A number may be followed by its digits.
var (
	words = map[string]string{"string": "text", "bool": "true or false", "array": "a list", "object": "fields",
		"number": "the number"}
	tags = map[string]string{"string": "!!str", "bool": "!!bool", "array": "!!seq", "object": "!!map"}
)

// lineOf is the line of a field, by its path or the end of it, whose value is what JSON calls so; 0 if none is, or if
// several are and nothing tells which.
func lineOf(data []byte, path, value string) int {
	var top nodes.Node
	if nodes.Unmarshal(data, &top) != nil {
		return 0
	}
	lines := fieldLines(&top, "", path, value)
	if len(lines) == 0 || value == "" && len(lines) > 1 {
		return 0
	}
	return lines[0]
}

// fieldLines lists the lines of fields below a node, which is at a path itself.
func fieldLines(n *nodes.Node, at, path, value string) []int {
	var lines []int
	for i, child := range n.Content {
		if n.Kind != nodes.MappingNode {
			lines = append(lines, fieldLines(child, at, path, value)...)
			continue
		}
		if i%2 == 0 {
			continue
		}
		key := n.Content[i-1]
		here := strings.TrimPrefix(at+"."+key.Value, ".")
		if (here == path || strings.HasSuffix(here, "."+path)) && is(child, value) {
			lines = append(lines, key.Line)
		}
		lines = append(lines, fieldLines(child, here, path, value)...)
	}
	return lines
}

// is says whether a node or, in a list, one of its entries is what JSON calls so; anything is "".
func is(n *nodes.Node, value string) bool {
	kind, _, _ := strings.Cut(value, " ")
	if kind == "" || n.Tag == tags[kind] || kind == "number" && (n.Tag == "!!int" || n.Tag == "!!float") {
		return true
	}
	for _, entry := range n.Content {
		if n.Kind == nodes.SequenceNode && is(entry, value) {
			return true
		}
	}
	return false
}
