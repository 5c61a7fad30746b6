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

// An Error is an error about the content of a file.
type Error struct {
	Line int // from 1; 0: not known
	Text string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Text
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Text)
}

// noise lists prefixes of the libraries' errors that mean nothing to users.
var noise = []string{
	"error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: ", "json: ", "yaml: ",
}

// Decode decodes YAML strictly into v. An unknown field or a value of the wrong type is an [Error] that names field and
// line.
func Decode(data []byte, v any) error {
	err := yaml.UnmarshalStrict(data, v)
	if err == nil {
		return nil
	}
	if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		return &Error{lineOf(data, wrong.Field, wrong.Value), mistyped(wrong)}
	}
	text := err.Error()
	for _, prefix := range noise {
		text = strings.TrimPrefix(text, prefix)
	}
	if found := unknownField.FindStringSubmatch(text); found != nil {
		return &Error{lineOf(data, found[2], ""), found[1]}
	}
	if found := syntax.FindStringSubmatch(text); found != nil {
		line, _ := strconv.Atoi(found[1]) // digits
		return &Error{line, found[2]}
	}
	return &Error{Text: text}
}

var (
	unknownField = regexp.MustCompile(`^(?:\w+: )*(unknown field "([^"]+)")`)
	syntax       = regexp.MustCompile(`(?s)^(?:unmarshal errors:\s+)?line (\d+): (.*)$`)
)

// mistyped returns the text of the error about a value of the wrong type: field, wanted and given type.
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

// Names of JSON's types, by json.UnmarshalTypeError.Value: for users and as YAML tags. A number may be followed by its
// digits.
var (
	words = map[string]string{"string": "text", "bool": "true or false", "array": "a list", "object": "fields",
		"number": "the number"}
	tags = map[string]string{"string": "!!str", "bool": "!!bool", "array": "!!seq", "object": "!!map"}
)

// lineOf returns the line of the first field whose path is or ends in path, and whose value has the JSON type value. An
// empty type stands for any type. It returns 0 if no field matches, or if several fields match an empty type.
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

// fieldLines lists the lines of the matching fields below a node, whose own path is at.
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
		if (here == path || strings.HasSuffix(here, "."+path)) && hasType(child, value) {
			lines = append(lines, key.Line)
		}
		lines = append(lines, fieldLines(child, here, path, value)...)
	}
	return lines
}

// hasType reports whether a node, or an entry of a list, has a JSON type; "" stands for any.
func hasType(n *nodes.Node, value string) bool {
	kind, _, _ := strings.Cut(value, " ")
	if kind == "" || n.Tag == tags[kind] || kind == "number" && (n.Tag == "!!int" || n.Tag == "!!float") {
		return true
	}
	for _, entry := range n.Content {
		if n.Kind == nodes.SequenceNode && hasType(entry, value) {
			return true
		}
	}
	return false
}
