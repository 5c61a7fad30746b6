// Package appfile reads the files in which users describe what is asked of their applications. It stands between
// such a file and package webapp, which makes requests of it: suites read a file, and the tool that asks reads what the
// suite kept of it.
package appfile

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/knotmeter/knotmeter/internal/family/app/webapp"
	"github.com/knotmeter/knotmeter/internal/userfile"
)

// An Entry is a description of a file, under its name.
type Entry struct {
	Name string
	webapp.Description
	// Loads are the ways in which it is asked, as parameters of the workload: rate=100, clients=10, knee=50ms.
	Loads []string
}

// Text is the description alone, in the form that [Parse] reads.
func (e Entry) Text() (string, error) {
	text, err := yaml.Marshal(e.Description)
	return string(text), err
}

// entry is an Entry as a file has it.
type entry struct {
	webapp.Description
	Loads []string `json:"loads,omitempty"`
}

// Parse reads one description; what it does not know is an error that Is webapp.ErrDescription.
func Parse(text string) (webapp.Description, error) {
	var d webapp.Description
	if err := userfile.Decode([]byte(text), &d); err != nil {
		return d, fmt.Errorf("%w: %w", webapp.ErrDescription, err)
	}
	return d, d.Validate()
}

// ParseFile reads a file: a description, or several by their names. Every error Is webapp.ErrDescription and says where
// in the file, as far as that is known.
func ParseFile(name string, data []byte) ([]Entry, error) {
	var top map[string]any
	if err := userfile.Decode(data, &top); err != nil {
		return nil, fail(name, data, err)
	}
	if len(top) == 0 {
		return nil, fmt.Errorf("%w: %s: it describes nothing", webapp.ErrDescription, name)
	}
	_, hasURL := top["url"]
	_, hasService := top["service"]
	if _, hasRequests := top["requests"]; hasURL || hasService || hasRequests {
		var one entry
		if err := userfile.Decode(data, &one); err != nil {
			return nil, fail(name, data, err)
		}
		own := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
		return entries(name, data, map[string]entry{own: one})
	}
	var several map[string]entry
	if err := userfile.Decode(data, &several); err != nil {
		return nil, fail(name, data, err)
	}
	return entries(name, data, several)
}

func entries(name string, data []byte, all map[string]entry) ([]Entry, error) {
	var list []Entry
	for _, key := range slices.Sorted(maps.Keys(all)) {
		e := Entry{Name: key, Description: all[key].Description, Loads: all[key].Loads}
		if err := e.Validate(); err != nil {
			return nil, fail(name, data, fmt.Errorf("%s: %w", key, err))
		}
		list = append(list, e)
	}
	return list, nil
}

// fail puts the file and, where the error names a field or an entry that is in it just once, the line before an error.
func fail(name string, data []byte, err error) error {
	place := name
	if wrong, is := errors.AsType[*userfile.Error](err); is {
		if wrong.Line > 0 {
			place = fmt.Sprintf("%s:%d", name, wrong.Line)
		}
		return fmt.Errorf("%w: %s: %s", webapp.ErrDescription, place, wrong.Text)
	}
	if line := lineOf(data, err.Error()); line > 0 {
		place = fmt.Sprintf("%s:%d", name, line)
	}
	return fmt.Errorf("%w: %s: %w", webapp.ErrDescription, place, err)
}

// lineOf is the line that an error is about, 0 if that is not known: that of the field which is invalid, or of the
// request by whose name it is called.
func lineOf(data []byte, text string) int {
	patterns := []string{}
	if m := regexp.MustCompile(`requests\[\d+\] \(([^)]+)\)`).FindStringSubmatch(text); m != nil {
		patterns = append(patterns, `(^|[\s{,])name\s*:\s*["']?`+regexp.QuoteMeta(m[1])+`["']?\s*([,}#]|$)`)
	}
	if m := regexp.MustCompile(`invalid description of requests: ([a-z]+): `).FindStringSubmatch(text); m != nil {
		patterns = append(patterns, `(^|[\s{,])`+m[1]+`\s*:`)
	}
	for _, pattern := range patterns {
		if line := only(data, regexp.MustCompile(pattern)); line > 0 {
			return line
		}
	}
	return 0
}

// only is the number of the one line that matches, 0 if there is none or several.
func only(data []byte, pattern *regexp.Regexp) int {
	found, n := 0, 0
	for line := range strings.Lines(string(data)) {
		n++
		if !pattern.MatchString(strings.TrimRight(line, "\r\n")) {
			continue
		}
		if found > 0 {
			return 0
		}
		found = n
	}
	return found
}
