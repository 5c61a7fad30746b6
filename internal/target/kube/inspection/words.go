package inspection

import (
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/result"
)

func List(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// orNone says of what a node does not say of itself that it does not.
func orNone(text string) string {
	if text == "" {
		return "none given"
	}
	return text
}

// Counted is how many there are, and their names.
func Counted(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return fmt.Sprintf("%d: %s", len(names), List(names))
}

func FactOf(r preflight.Report, name string) string {
	for _, f := range r.Facts {
		if f.Name == name {
			return f.Value
		}
	}
	return result.Unknown
}

func Known(value string, is bool) string {
	if !is {
		return result.Unknown
	}
	return value
}
