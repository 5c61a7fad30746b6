package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// A document is one of the JSON values in a file.
type document struct {
	name   string
	line   int // number of its first line in the file
	text   []byte
	before string // notes of the tool and other text between this value and the one before
}

// documents returns the JSON values of a file: an array that the file begins with, and every object that begins a line.
// Text between them, such as a tool's notes or a log, is skipped. It returns an error if there is none; wanted
// describes the expected format in errors.
func documents(name string, data []byte, wanted string) ([]document, error) {
	var all []document
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if linePrefix.Match(bytes.TrimLeft(data, "\r\n")) {
		data = []byte(strings.Join(textLines(data), "\n"))
	}
	first := bytes.TrimLeft(data, " \t\r\n")
	at := len(data) - len(first)
	if len(first) == 0 {
		return nil, formatError(name, 0, "it is empty; wanted %s", wanted)
	}
	if !startsList(first) {
		at = nextObject(data, 0)
	}
	for end := 0; at >= 0; {
		d := document{name: name, line: 1 + bytes.Count(data[:at], []byte{'\n'}), before: string(data[end:at])}
		decoder := json.NewDecoder(bytes.NewReader(data[at:]))
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, d.syntaxError(data[at:], err, wanted)
		}
		end = at + int(decoder.InputOffset())
		d.text = data[at:end]
		all = append(all, d)
		at = nextObject(data, end)
	}
	if len(all) == 0 {
		return nil, formatError(name, 1, "it begins with %q, and no line with a JSON object; wanted %s",
			excerpt(first), wanted)
	}
	return all, nil
}

// readDocuments reads the records of every document of a file.
func readDocuments(name string, data []byte, wanted string,
	read func(document) ([]Record, error)) ([]Record, error) {
	docs, err := documents(name, data, wanted)
	if err != nil {
		return nil, err
	}
	var records []Record
	for _, d := range docs {
		found, err := read(d)
		if err != nil {
			return nil, err
		}
		records = append(records, found...)
	}
	return records, nil
}

// startsList reports whether a text begins with a JSON array that is empty or holds objects or arrays. Rows on a
// terminal may begin with a bracket, too.
func startsList(text []byte) bool {
	rest, is := bytes.CutPrefix(text, []byte{'['})
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return is && len(rest) > 0 && bytes.IndexByte([]byte("{[]"), rest[0]) >= 0
}

// nextObject returns the offset of the first object at or after at that begins a line; -1 if there is none.
func nextObject(data []byte, at int) int {
	lineStart := true // only space since the line began, or since a document ended
	for ; at < len(data); at++ {
		switch c := data[at]; {
		case c == '\n':
			lineStart = true
		case c == '{' && lineStart:
			return at
		case c != ' ' && c != '\t' && c != '\r':
			lineStart = false
		}
	}
	return -1
}

// excerpt returns the beginning of the first line of a text, at most 60 bytes, for errors.
func excerpt(text []byte) string {
	line, _, _ := bytes.Cut(text, []byte{'\n'})
	return strings.ToValidUTF8(string(line[:min(len(line), 60)]), "�")
}

// syntaxError returns an error about text that is not valid JSON.
func (d document) syntaxError(text []byte, err error, wanted string) error {
	offset := int64(len(text))
	var at *json.SyntaxError
	if errors.As(err, &at) {
		offset = min(max(at.Offset, 0), offset)
	}
	line := d.line + bytes.Count(text[:offset], []byte{'\n'})
	return formatError(d.name, line, "broken JSON (%w); wanted %s", err, wanted)
}

// decode unmarshals the document into v. An error has the line, and the JSON path of a value of the wrong type.
func (d document) decode(v any, wanted string) error {
	err := json.Unmarshal(d.text, v)
	if err == nil {
		return nil
	}
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) {
		offset := min(max(typed.Offset, 0), int64(len(d.text)))
		line := d.line + bytes.Count(d.text[:offset], []byte{'\n'})
		return formatError(d.name, line, "%s; wanted %s", mistyped(typed, "the document"), wanted)
	}
	return d.syntaxError(d.text, err, wanted)
}

// mistyped says which value has the wrong type, and which it should have, in the words of JSON. whole is the name of
// the outermost value.
func mistyped(err *json.UnmarshalTypeError, whole string) string {
	found := err.Value
	if kind, _, _ := strings.Cut(found, " "); kind == "array" {
		found = "list"
	}
	should := "number"
	switch err.Type.Kind() {
	case reflect.Map, reflect.Struct:
		should = "JSON object"
	case reflect.Slice, reflect.Array:
		should = "list"
	case reflect.String:
		should = "text"
	case reflect.Bool:
		should = "true or false"
	}
	return fmt.Sprintf("%s is a JSON %s and should be a %s", cmp.Or(err.Field, whole), found, should)
}

// fail returns an error about a JSON path of the document.
func (d document) fail(path, format string, a ...any) error {
	return formatError(d.name, d.line, "%s: %s", path, fmt.Sprintf(format, a...))
}

// place returns the line of the document and, if given, a JSON path in it.
func (d document) place(path string) string {
	if path == "" {
		return fmt.Sprintf("line %d", d.line)
	}
	return fmt.Sprintf("line %d, %s", d.line, path)
}
