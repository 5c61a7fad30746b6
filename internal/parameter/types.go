package parameter

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/unit"
)

// Int are whole numbers in a range.
func Int(low, high int) Values[int] {
	return Values[int]{
		Valid: fmt.Sprintf("%d to %d", low, high), Parse: strconv.Atoi, Format: strconv.Itoa, Is: within(low, high),
	}
}

// Size are sizes of whole bytes in a range; format writes one.
func Size(low, high int, format func(int) string) Values[int] {
	return Values[int]{
		Valid: SizeText(low) + " to " + SizeText(high), Parse: unit.ParseSize, Format: format, Is: within(low, high),
	}
}

// SizeText returns a size with the largest binary prefix that leaves it whole: 16KiB.
func SizeText(bytes int) string {
	for _, prefix := range []struct {
		name string
		bits int
	}{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}} {
		if bytes > 0 && bytes%(1<<prefix.bits) == 0 {
			return strconv.Itoa(bytes>>prefix.bits) + prefix.name
		}
	}
	return strconv.Itoa(bytes)
}

// Duration are times in a range.
func Duration(low, high time.Duration) Values[time.Duration] {
	return Values[time.Duration]{
		Valid: durationText(low) + " to " + durationText(high), Parse: time.ParseDuration,
		Format: time.Duration.String, Is: within(low, high),
	}
}

// durationText returns a duration without zeros at its end: 1m.
func durationText(d time.Duration) string {
	text := d.String()
	if whole, is := strings.CutSuffix(text, "m0s"); is {
		return whole + "m"
	}
	return text
}

func within[T cmp.Ordered](low, high T) func(T) bool {
	return func(v T) bool { return low <= v && v <= high }
}

// Number are numbers with a unit for which valid holds. It is false for 0, which would become the default.
func Number(u unit.Unit, values string, valid func(float64) bool) Values[float64] {
	return Values[float64]{
		Valid: values, Parse: func(text string) (float64, error) { return unit.ParseAs(text, u) },
		Format: func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }, Is: valid,
	}
}

// Text are texts that match a pattern.
func Text(values string, pattern *regexp.Regexp) Values[string] {
	same := func(text string) string { return text }
	return Values[string]{
		Valid: values, Parse: func(text string) (string, error) { return text, nil }, Format: same,
		Is: pattern.MatchString,
	}
}

// OneOf are some words.
func OneOf[T ~string](words ...T) Values[T] {
	return Values[T]{
		Valid: alternatives(words), Parse: func(text string) (T, error) { return T(text), nil },
		Format: func(word T) string { return string(word) },
		Is:     func(word T) bool { return slices.Contains(words, word) },
	}
}

// Switch are two words, of which the first is the default.
func Switch(off, on string) Values[bool] {
	words := OneOf(off, on)
	return Values[bool]{
		Valid: words.Valid, Format: func(bool) string { return on },
		Parse: func(text string) (bool, error) {
			if !words.Is(text) {
				return false, errors.New("neither of the words")
			}
			return text == on, nil
		},
	}
}

// alternatives joins words: forward, reverse or both.
func alternatives[T ~string](words []T) string {
	var list []string
	for _, word := range words {
		list = append(list, string(word))
	}
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " or " + list[last]
}
