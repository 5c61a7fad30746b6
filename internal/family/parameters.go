package family

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/prose"
)

// Parameters calls set for each key=value in parameters, which are separated by commas. A repeated key is an error.
// Errors, including those of set, quote the parameter and text, the name of the workload, and wrap [ErrInvalid].
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

// CheckParameter returns nil if key is one of the known parameters, else an error that lists them. what names the
// workload.
func CheckParameter(what, key string, known []string) error {
	if slices.Contains(known, key) {
		return nil
	}
	if len(known) == 0 {
		return fmt.Errorf("%s has no parameters", what)
	}
	return fmt.Errorf("%s has no such parameter; it has %s", what, prose.Choices(key, known))
}

// Positive returns v, with an error if it is not above 0, because a 0 would silently become the default. It returns err
// unchanged if that is not nil.
func Positive[T int | float64 | time.Duration](v T, err error) (T, error) {
	if err == nil && v <= 0 {
		err = errors.New("it has to be above 0")
	}
	return v, err
}
