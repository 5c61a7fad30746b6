package prose

import (
	"regexp"
	"strings"
)

// Typeset keeps a percent sign on the line of its number, and gives negative numbers a real minus sign.
func Typeset(s string) string {
	return strings.ReplaceAll(minusSign.ReplaceAllString(s, "${1}−$2"), " %", "\u00a0%")
}

// minusSign matches a hyphen before a number, unless it is part of a range.
var minusSign = regexp.MustCompile(`(^|[\s(\[])-([0-9∞])`)
