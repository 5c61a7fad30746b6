package page

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/unit"
)

// A style is how a page writes its numbers. "9,410" is 9410 on one page and 9.41 on another; numbers with only one
// reading, such as "9,41" and "0.5", show which.
type style struct {
	commas, points int    // numbers with decimals after a comma, and after a point
	doubts         int    // numbers with two readings
	first          string // how the first of them was read
	firstLine      int
}

// A reading is what the separators of a number can mean.
type reading int

const (
	noNumber     reading = iota
	plain                // an integer, perhaps with more than one comma between thousands
	afterPoint           // decimals after a point, thousands between commas
	afterComma           // decimals after a comma, thousands between points
	unclearComma         // "9,410"
	unclearPoint         // "1.024": decimals, unless the page has them after commas
	manyPoints           // "1.024.000": a version, unless the page has decimals after commas
)

var (
	byCommas = regexp.MustCompile(`^[1-9]\d{0,2}(?:,\d{3})+$`)
	byPoints = regexp.MustCompile(`^[1-9]\d{0,2}(?:\.\d{3})+$`)
	cellWord = regexp.MustCompile(`\d[\d.,]*\d`)
)

// readingOf returns the reading of a number without sign and exponent.
func readingOf(word string) reading {
	comma, point := strings.LastIndex(word, ","), strings.LastIndex(word, ".")
	commas, points := strings.Count(word, ","), strings.Count(word, ".")
	switch {
	case word == "" || comma == 0 || max(comma, point) == len(word)-1:
	case commas+points == 0 || commas > 1 && byCommas.MatchString(word):
		return plain
	case byCommas.MatchString(word):
		return unclearComma
	case points > 1 && byPoints.MatchString(word):
		return manyPoints
	case byPoints.MatchString(word):
		return unclearPoint
	case points == 1 && (commas == 0 || byCommas.MatchString(word[:point])):
		return afterPoint
	case commas == 1 && (points == 0 || byPoints.MatchString(word[:comma])):
		return afterComma
	}
	return noNumber
}

// doubtText describes the numbers with two readings.
func (s *style) doubtText() string {
	text := s.first
	if s.doubts > 1 {
		text += fmt.Sprintf(", and %d others alike", s.doubts-1)
	}
	switch {
	case s.commas == 0:
		return text + ": no number shows whether decimals follow a comma"
	case s.points == 0:
		return text + ": other numbers have decimals after a comma"
	}
	return text + ": other numbers have decimals after a comma, and others after a point"
}

// observe counts the numbers in a text that show the style.
func (s *style) observe(text string) {
	for _, word := range cellWord.FindAllString(text, -1) {
		switch readingOf(word) {
		case afterPoint:
			s.points++
		case afterComma:
			s.commas++
		}
	}
}

// number parses a number in the style of the page, and the value of one unit in its last digit.
func (s *style) number(text string) (number, digit float64, ok bool) {
	mantissa, exponent := text, ""
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		mantissa, exponent = text[:at], text[at:]
	}
	word := strings.NewReplacer(" ", "", "'", "", "’", "").Replace(strings.TrimLeft(mantissa, "+-"))
	decimalsByComma := s.commas > 0 && s.points == 0
	read := readingOf(word)
	if read == noNumber || read == manyPoints && !decimalsByComma {
		return 0, 0, false
	}
	doubt := read == unclearComma && (s.commas > 0 || s.points == 0) || read == unclearPoint && decimalsByComma
	if read == afterComma || decimalsByComma && read != plain && read != afterPoint {
		word = strings.Replace(strings.ReplaceAll(word, ".", ""), ",", ".", 1)
	}
	word = strings.ReplaceAll(word, ",", "")
	if strings.HasPrefix(mantissa, "-") {
		word = "-" + word
	}
	number, u, err := unit.Parse(word + exponent)
	if err != nil || u != unit.Count {
		return 0, 0, false
	}
	if doubt {
		if s.doubts == 0 {
			s.first = fmt.Sprintf("%q was read as %s", text, strconv.FormatFloat(number, 'f', -1, 64))
		}
		s.doubts++
	}
	if _, decimals, _ := strings.Cut(word, "."); exponent == "" {
		digit = math.Pow10(-len(decimals))
	}
	return number, digit, true
}

// peek parses a cell without a note of numbers with two readings.
func (s *style) peek(text string) ([]figure, string) {
	clone := style{commas: s.commas, points: s.points}
	return clone.parseCell(text)
}
