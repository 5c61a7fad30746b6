// Package unit defines the base units of measured values, formats values as text and parses them.
//
// Inside the program a value is always in its base unit; prefixes appear only in text for users. The package imports no
// other package of the module.
package unit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Unit is a base unit, without prefix.
type Unit string

// The base units.
const (
	BitPerSecond  Unit = "bit/s"
	BytePerSecond Unit = "B/s" // of memory and computations; all else that is transferred is in bit/s
	Second        Unit = "s"
	PerSecond     Unit = "op/s" // operations: transactions, datagrams, connections
	Byte          Unit = "B"
	Ratio         Unit = "ratio" // 1 is the whole
	Count         Unit = "1"
	SecondPerGB   Unit = "s/GB" // CPU time per 10^9 bytes
	SecondPerOp   Unit = "s/op" // CPU time per operation
)

// Units for text about volumes, see [Unit.OfVolume].
const (
	VolumeRate Unit = "bit/s of a volume" // as B/s with binary prefixes
	IOPS       Unit = "IOPS"              // as operations per second
)

// ErrSyntax is wrapped by every error of the parsers in this package.
var ErrSyntax = errors.New("not a value with a unit")

type prefix struct {
	name  string
	scale float64
}

// Prefixes, the largest first: large for rates and sizes, small for times.
var (
	large = []prefix{{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"", 1}}
	small = []prefix{{"", 1}, {"m", 1e-3}, {"µ", 1e-6}, {"n", 1e-9}}
	// binary prefixes are for MiB/s; published figures of storage use no larger ones.
	binary = []prefix{{"Mi", 1 << 20}, {"Ki", 1 << 10}, {"", 1}}
)

// Format formats v, given in the base unit u, with three significant digits and a decimal prefix: 9.13e9 bit/s becomes
// "9.13 Gbit/s", 4.52e-5 s becomes "45.2 µs". A ratio becomes a percentage, a [VolumeRate] of 8.4e6 bit/s "1.00 MiB/s",
// and values that are not finite become "-".
func Format(v float64, u Unit) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	switch u {
	case Ratio:
		return digits(v*100) + " %"
	case Count:
		return digits(v)
	case Second, SecondPerGB, SecondPerOp:
		return scaled(v, u, small)
	case VolumeRate:
		return scaled(v/8, BytePerSecond, binary)
	default:
		return scaled(v, u, large)
	}
}

func scaled(v float64, u Unit, prefixes []prefix) string {
	if v == 0 {
		return "0 " + string(u)
	}
	for _, p := range prefixes {
		// The factor 0.9995 makes 999.6 k print as 1.00 M.
		if math.Abs(v) >= p.scale*0.9995 {
			return digits(v/p.scale) + " " + p.name + string(u)
		}
	}
	last := prefixes[len(prefixes)-1]
	return digits(v/last.scale) + " " + last.name + string(u)
}

// digits formats v without exponent, with three significant digits, or more if its integer part has more.
func digits(v float64) string {
	a := math.Abs(v)
	switch {
	case a >= 99.95 || a == 0:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.9995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		decimals := 2 - int(math.Floor(math.Log10(a)))
		text := strconv.FormatFloat(v, 'f', min(decimals, maxDecimals), 64)
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
		if text == "-0" {
			return "0"
		}
		return text
	}
}

// maxDecimals limits the decimals of digits; smaller values print as 0.
const maxDecimals = 12

// Join formats a range of two values written by [Format] or [FormatFactor], with the unit once if both have the same:
// "22.7 to 22.9 µs". Equal values are written once.
func Join(lo, hi string) string {
	if lo == hi {
		return lo
	}
	if number, symbol, found := strings.Cut(lo, " "); found && strings.HasSuffix(hi, " "+symbol) {
		lo = number
	}
	return lo + " to " + hi
}

// Plural formats a number of things, with an s appended to the noun unless n is 1: "1 run", "2 runs".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// FormatChange formats a fraction as a signed percentage with one decimal: 0.0312 is "+3.1 %".
func FormatChange(fraction float64) string {
	if math.IsNaN(fraction) || math.IsInf(fraction, 0) {
		return "-"
	}
	return fmt.Sprintf("%+.1f %%", fraction*100)
}

// FactorFrom is the fraction from which [FormatFactor] writes a factor instead of a percentage.
const FactorFrom = 2

// FormatFactor formats a fraction as a short signed percentage, or from threefold on as a factor: -0.254 is "-25 %",
// 0.031 "+3.1 %", 9.2 "×10.2".
func FormatFactor(fraction float64) string {
	switch {
	case math.IsNaN(fraction) || math.IsInf(fraction, 0):
		return "-"
	case fraction >= FactorFrom:
		return "×" + factor(1+fraction)
	case math.Abs(fraction) >= 0.0995:
		return fmt.Sprintf("%+.0f %%", fraction*100)
	}
	return fmt.Sprintf("%+.1f %%", fraction*100)
}

// factor formats a number with one decimal below a hundred, and with an exponent from ten thousand on.
func factor(v float64) string {
	switch {
	case v < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v < 9999.5:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// OfVolume returns the unit that text about a volume has for values in u: MiB/s for bit/s, and IOPS for op/s. The
// values stay in u.
func (u Unit) OfVolume() Unit {
	switch u {
	case BitPerSecond:
		return VolumeRate
	case PerSecond:
		return IOPS
	}
	return u
}

// A symbol describes a spelling of a unit: its base unit, and its size in the base unit.
type symbol struct {
	unit  Unit
	scale float64
}

// symbols lists the spellings that users and tools write, without prefix. [lookUp] accepts any prefix in front of them,
// except for ratios and counts.
var symbols = map[string]symbol{
	"bit/s": {BitPerSecond, 1}, "bits/s": {BitPerSecond, 1}, "bit/sec": {BitPerSecond, 1}, "bits/sec": {BitPerSecond, 1},
	"Bit/s": {BitPerSecond, 1}, "Bits/sec": {BitPerSecond, 1}, "bps": {BitPerSecond, 1},
	"b/s": {BitPerSecond, 1}, "10^6bits/s": {BitPerSecond, 1e6},
	"B/s": {BitPerSecond, 8}, "Bytes/sec": {BitPerSecond, 8},
	"Bytes/s": {BitPerSecond, 8}, "bytes/s": {BitPerSecond, 8}, "Bps": {BitPerSecond, 8},
	"s": {Second, 1}, "sec": {Second, 1}, "second": {Second, 1}, "seconds": {Second, 1},
	"op/s": {PerSecond, 1}, "ops/s": {PerSecond, 1}, "/s": {PerSecond, 1}, "/sec": {PerSecond, 1},
	"trans/s": {PerSecond, 1}, "Trans/s": {PerSecond, 1}, "transactions/s": {PerSecond, 1}, "tps": {PerSecond, 1},
	"req/s": {PerSecond, 1}, "requests/s": {PerSecond, 1},
	"rps": {PerSecond, 1}, "qps": {PerSecond, 1}, "conn/s": {PerSecond, 1},
	"packets/s": {PerSecond, 1}, "pps": {PerSecond, 1}, "IOPS": {PerSecond, 1}, "iops": {PerSecond, 1},
	"B": {Byte, 1}, "byte": {Byte, 1}, "bytes": {Byte, 1}, "Byte": {Byte, 1}, "Bytes": {Byte, 1},
	"ratio": {Ratio, 1}, "%": {Ratio, 0.01}, "percent": {Ratio, 0.01},
	"1": {Count, 1}, "": {Count, 1},
	"s/GB": {SecondPerGB, 1}, "s/op": {SecondPerOp, 1},
}

var prefixScale = map[string]float64{
	"": 1, "n": 1e-9, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "m": 1e-3,
	"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
	"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40,
}

// Parse reads "9.4 Gbit/s", "45us", "6056 trans/s", "128KiB" or "3.4 %" and returns the value in its base unit. A bare
// number has the unit [Count]. Every error wraps [ErrSyntax] and quotes the text.
func Parse(text string) (float64, Unit, error) {
	s := strings.TrimSpace(text)
	rest := strings.TrimLeft(s, "+-.0123456789eE")
	// "1e3" is a number, but in "5 e" and "3E" the letter belongs to the unit.
	number := strings.TrimRight(s[:len(s)-len(rest)], "eE")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsInf(v, 0) {
		return 0, "", fmt.Errorf("%w: %q", ErrSyntax, text)
	}
	scale, u, ok := lookUp(strings.TrimSpace(s[len(number):]))
	if !ok {
		return 0, "", fmt.Errorf("%w: %q has an unknown unit", ErrSyntax, text)
	}
	if v *= scale; math.IsInf(v, 0) {
		return 0, "", fmt.Errorf("%w: %q is too large", ErrSyntax, text)
	}
	return v, u, nil
}

// lookUp finds a spelling, with or without a prefix. A spelling without prefix takes precedence; a prefix alone, such
// as "m", is no unit.
func lookUp(name string) (scale float64, u Unit, ok bool) {
	if s, found := symbols[name]; found {
		return s.scale, s.unit, true
	}
	for p, factor := range prefixScale {
		rest, found := strings.CutPrefix(name, p)
		if !found || p == "" || rest == "" || rest == "%" {
			continue
		}
		if s, found := symbols[rest]; found && s.unit != Ratio && s.unit != Count {
			return factor * s.scale, s.unit, true
		}
	}
	return 0, "", false
}

// ParseAs reads a value as Parse does and returns an error unless its unit is want; a bare number is taken to be in
// that unit.
func ParseAs(text string, want Unit) (float64, error) {
	v, u, err := Parse(text)
	if err != nil {
		return 0, err
	}
	if u != want && u != Count {
		return 0, fmt.Errorf("%w: %q is in %s, wanted %s", ErrSyntax, text, u, want)
	}
	return v, nil
}

// ParseSize reads a size in bytes from 0 to 2 GiB: "1400", "64KiB" (1024 bytes each), "128k" (1000 bytes each).
func ParseSize(text string) (int, error) {
	s := strings.TrimSpace(text)
	if s != "" && !strings.HasSuffix(s, "B") && !strings.HasSuffix(s, "bytes") {
		s += "B"
	}
	v, err := ParseAs(s, Byte)
	if err != nil {
		return 0, err
	}
	// Rounding: 1.1 times 1000 may differ slightly from 1100.
	whole := math.Round(v)
	if whole < 0 || math.Abs(v-whole) > 1e-6 || whole > math.MaxInt32 {
		return 0, fmt.Errorf("%w: %q is not a whole number of bytes from 0 to 2 GiB", ErrSyntax, text)
	}
	return int(whole), nil
}
