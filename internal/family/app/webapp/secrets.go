package webapp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family"
)

// ReadSecrets returns the secret header fields of all requests, by the names of the request and the field. Its errors
// name the source of a secret, never its value.
func (d Description) ReadSecrets(from family.Environment) (map[string]map[string]string, error) {
	all := map[string]map[string]string{}
	for _, r := range d.Requests {
		for _, field := range slices.Sorted(maps.Keys(r.Secrets)) {
			value, err := r.Secrets[field].read(from)
			if err != nil {
				return nil, fmt.Errorf("%w: %s: %s: %w", ErrDescription, r.Name, field, err)
			}
			if all[r.Name] == nil {
				all[r.Name] = map[string]string{}
			}
			all[r.Name][field] = value
		}
	}
	return all, nil
}

func (s Secret) read(from family.Environment) (string, error) {
	value, source := from.Getenv(s.Env), "the environment's "+s.Env
	if s.File != "" {
		text, err := from.ReadFile(s.File)
		if err != nil {
			return "", err
		}
		value, source = strings.TrimSpace(string(text)), s.File
	}
	switch {
	case value == "":
		return "", fmt.Errorf("%s is empty or not set", source)
	case !printable(value):
		return "", fmt.Errorf("%s has characters that no header field can have", source)
	}
	return s.Prefix + value, nil
}
