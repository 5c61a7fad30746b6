package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// A document is one JSON value of a file that may hold several, and lines of other text.
type document struct {
	name string
	line int // of the file, where it begins
	text []byte
}

// documents finds the JSON values of a file: the whole of it, or every object that begins on a line of
// its own. What stands between them, such as a tool's notes or a log, is left out. There is at least one.
func documents(name string, data []byte, wanted string) ([]document, error) {
	var all []document
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	first := bytes.TrimLeft(data, " \t\r\n")
	at := len(data) - len(first)
	if len(first) == 0 {
		return nil, broken(name, 0, "it is empty; wanted %s", wanted)
	}
	if first[0] != '[' {
		at = nextObject(data, 0)
	}
	for at >= 0 {
		d := document{name: name, line: 1 + bytes.Count(data[:at], []byte{'\n'})}
		decoder := json.NewDecoder(bytes.NewReader(data[at:]))
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, d.syntax(data[at:], err, wanted)
		}
		end := at + int(decoder.InputOffset())
		d.text = data[at:end]
		all = append(all, d)
		at = nextObject(data, end)
	}
	if len(all) == 0 {
		return nil, broken(name, 1, "no line begins with {, so there is no JSON object; wanted %s; it begins with %q",
			wanted, excerpt(first))
	}
	return all, nil
}

// readDocuments reads the records of every document of a file.
func readDocuments(name string, data []byte, wanted string, of func(document) ([]Record, error)) ([]Record, error) {
	docs, err := documents(name, data, wanted)
	if err != nil {
		return nil, err
	}
	var records []Record
	for _, d := range docs {
		found, err := of(d)
		if err != nil {
			return nil, err
		}
		records = append(records, found...)
	}
	return records, nil
}

// nextObject is where the next object that begins a line stands, from at on; -1 if nowhere.
func nextObject(data []byte, at int) int {
	fresh := true // nothing but space since the line began, or since a document ended
	for ; at < len(data); at++ {
		switch c := data[at]; {
		case c == '\n':
			fresh = true
		case c == '{' && fresh:
			return at
		case c != ' ' && c != '\t' && c != '\r':
			fresh = false
		}
	}
	return -1
}

// excerpt is how a text begins, for an error.
func excerpt(text []byte) string {
	line, _, _ := bytes.Cut(text, []byte{'\n'})
	return strings.ToValidUTF8(string(line[:min(len(line), 60)]), "�")
}

// syntax is an error about text that is no JSON.
func (d document) syntax(text []byte, err error, wanted string) error {
	offset := int64(len(text))
	var at *json.SyntaxError
	if errors.As(err, &at) {
		offset = min(max(at.Offset, 0), offset)
	}
	line := d.line + bytes.Count(text[:offset], []byte{'\n'})
	return broken(d.name, line, "broken JSON (%w); wanted %s", err, wanted)
}

// decode reads the document into v, and says line and path of what has another type than wanted.
func (d document) decode(v any, wanted string) error {
	err := json.Unmarshal(d.text, v)
	if err == nil {
		return nil
	}
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) {
		offset := min(max(typed.Offset, 0), int64(len(d.text)))
		line := d.line + bytes.Count(d.text[:offset], []byte{'\n'})
		path := typed.Field
		if path == "" {
			path = "the document"
		}
		return broken(d.name, line, "%s is a JSON %s, wanted %s; is it %s?", path, typed.Value, typed.Type, wanted)
	}
	return d.syntax(d.text, err, wanted)
}

// fail is an error about a JSON path of the document.
func (d document) fail(path, format string, a ...any) error {
	return broken(d.name, d.line, "%s: %s", path, fmt.Sprintf(format, a...))
}

// place is where a record of the document is from.
func (d document) place(path string) string {
	if path == "" {
		return fmt.Sprintf("line %d", d.line)
	}
	return fmt.Sprintf("line %d, %s", d.line, path)
}
