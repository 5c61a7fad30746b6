package app

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

// An entry is a description of a file.
type entry struct {
	webapp.Description
	// Loads are the ways in which it is asked, as parameters of the workload: rate=100, clients=10, knee=50ms.
	Loads []string `json:"loads,omitempty"`
}

// text is the description alone, in the form that Workload.Description reads.
func (e entry) text() (string, error) {
	text, err := yaml.Marshal(e.Description)
	return string(text), err
}

// parseFile reads a file: a description, or several, by their names. Every error Is webapp.ErrDescription and says
// where in the file, as far as that is known.
func parseFile(name string, data []byte) (map[string]entry, error) {
	var top map[string]any
	if err := userfile.Decode(data, &top); err != nil {
		return nil, fail(name, data, err)
	}
	if len(top) == 0 {
		return nil, fmt.Errorf("%w: %s: it describes nothing", webapp.ErrDescription, name)
	}
	_, hasURL := top["url"]
	_, hasService := top["service"]
	_, hasRequests := top["requests"]
	var one entry
	var several map[string]entry
	into := any(&several)
	if hasURL || hasService || hasRequests {
		into = &one
	}
	if err := userfile.Decode(data, into); err != nil {
		return nil, fail(name, data, err)
	}
	if several == nil {
		several = map[string]entry{strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)): one}
	}
	for _, key := range slices.Sorted(maps.Keys(several)) {
		if err := several[key].Validate(); err != nil {
			return nil, fail(name, data, fmt.Errorf("%s: %w", key, err))
		}
	}
	return several, nil
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
	if m := wrongRequest.FindStringSubmatch(text); m != nil {
		name := `(^|[\s{,])name\s*:\s*["']?` + regexp.QuoteMeta(m[1]) + `["']?\s*([,}#]|$)`
		if line := only(data, regexp.MustCompile(name)); line > 0 {
			return line
		}
	}
	if m := wrongField.FindStringSubmatch(text); m != nil {
		return only(data, regexp.MustCompile(`(^|[\s{,])`+m[1]+`\s*:`))
	}
	return 0
}

// What errors of a description call what is wrong.
var (
	wrongRequest = regexp.MustCompile(`requests\[\d+\] \(([^)]+)\)`)
	wrongField   = regexp.MustCompile(`invalid description of requests: ([a-z]+): `)
)

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
