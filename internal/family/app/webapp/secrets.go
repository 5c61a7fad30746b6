package webapp

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ReadSecrets reads the secret header fields of all requests, by the request's name and the field's. What is
// missing is an error that names where it was looked for, never what was found.
func (d Description) ReadSecrets(getenv func(string) string,
	readFile func(string) ([]byte, error)) (map[string]map[string]string, error) {
	all := map[string]map[string]string{}
	for _, r := range d.Requests {
		for _, field := range slices.Sorted(maps.Keys(r.Secrets)) {
			value, err := r.Secrets[field].read(getenv, readFile)
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

func (s Secret) read(getenv func(string) string, readFile func(string) ([]byte, error)) (string, error) {
	value, from := getenv(s.Env), "the environment's "+s.Env
	if s.File != "" {
		text, err := readFile(s.File)
		if err != nil {
			return "", err
		}
		value, from = strings.TrimSpace(string(text)), s.File
	}
	switch {
	case value == "":
		return "", fmt.Errorf("%s is empty or not set", from)
	case !printable(value):
		return "", fmt.Errorf("%s has characters that no header field can have", from)
	}
	return s.Prefix + value, nil
}
