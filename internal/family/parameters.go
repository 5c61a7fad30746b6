package family

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/prose"
)

// Parameters hands the parameters of a workload's text, key=value with commas between, to set, each once. Errors name
// the parameter, those of set too, and Is ErrInvalid.
func Parameters(text, parameters string, set func(key, value string) error) error {
	if parameters == "" {
		return nil
	}
	var seen []string
	for p := range strings.SplitSeq(parameters, ",") {
		key, value, is := strings.Cut(p, "=")
		if !is {
			return fmt.Errorf("%w: %q in %q is not key=value", ErrInvalid, p, text)
		}
		if slices.Contains(seen, key) {
			return fmt.Errorf("%w: %s is given twice in %q", ErrInvalid, key, text)
		}
		seen = append(seen, key)
		if err := set(key, value); err != nil {
			return fmt.Errorf("%w: %s=%s in %q: %w", ErrInvalid, key, value, text, err)
		}
	}
	return nil
}

// Known is nil for a parameter that what has; else it names those that it has.
func Known(what, key string, known []string) error {
	if slices.Contains(known, key) {
		return nil
	}
	if len(known) == 0 {
		return fmt.Errorf("%s has no parameters", what)
	}
	return fmt.Errorf("%s has no such parameter; it has %s", what, prose.Choices(key, known))
}

// Positive is an error for a value that is not above 0, which would silently become the default.
func Positive[T int | float64 | time.Duration](v T, err error) (T, error) {
	if err == nil && v <= 0 {
		err = errors.New("it has to be above 0")
	}
	return v, err
}
