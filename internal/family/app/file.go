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

// An entry is one description in a file.
type entry struct {
	webapp.Description
	// Loads lists the paces at which the requests are sent, as parameters of a workload: rate=100, clients=10, knee=50ms.
	Loads []string `json:"loads,omitempty"`
}

// definition returns the description without the loads, in the form that Workload.Description reads.
func (e entry) definition() (string, error) {
	text, err := yaml.Marshal(e.Description)
	return string(text), err
}

// parseFile reads a file with one description, which is named after the file, or with several descriptions by name.
// Every error wraps webapp.ErrDescription and has the line in the file, if that is known.
func parseFile(name string, data []byte) (map[string]entry, error) {
	var top map[string]any
	if err := userfile.Decode(data, &top); err != nil {
		return nil, fileError(name, data, err)
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
		return nil, fileError(name, data, err)
	}
	if several == nil {
		several = map[string]entry{strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)): one}
	}
	for _, key := range slices.Sorted(maps.Keys(several)) {
		if err := several[key].Validate(); err != nil {
			return nil, fileError(name, data, fmt.Errorf("%s: %w", key, err))
		}
	}
	return several, nil
}

// fileError returns the error with the name of the file and, if it is known, the line in front.
func fileError(name string, data []byte, err error) error {
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

// lineOf returns the line of the request or field that an error names, 0 if there is none or it is on several lines.
func lineOf(data []byte, text string) int {
	if m := wrongRequest.FindStringSubmatch(text); m != nil {
		name := `(^|[\s{,])name\s*:\s*["']?` + regexp.QuoteMeta(m[1]) + `["']?\s*([,}#]|$)`
		if line := onlyLine(data, regexp.MustCompile(name)); line > 0 {
			return line
		}
	}
	if m := wrongField.FindStringSubmatch(text); m != nil {
		return onlyLine(data, regexp.MustCompile(`(^|[\s{,])`+m[1]+`\s*:`))
	}
	return 0
}

// The parts of a description's errors that name the invalid request or field.
var (
	wrongRequest = regexp.MustCompile(`requests\[\d+\] \(([^)]+)\)`)
	wrongField   = regexp.MustCompile(`invalid description of requests: ([a-z]+): `)
)

// onlyLine returns the number of the only line that matches, 0 if there is none or there are several.
func onlyLine(data []byte, pattern *regexp.Regexp) int {
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
