// Package unit holds the base units of every measured value, and turns values into text and text into values.
//
// It stands at the right end of the data flow: everything that carries a number uses it, and it uses nothing of ours.
// Inside the program a value is always in its base unit; only what a person reads or writes has prefixes.
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
	BitPerSecond Unit = "bit/s"
	Second       Unit = "s"
	PerSecond    Unit = "op/s" // operations: transactions, datagrams, connections
	Byte         Unit = "B"
	Ratio        Unit = "ratio" // 1 is the whole
	Count        Unit = "1"
	SecondPerGB  Unit = "s/GB" // CPU time per 10^9 bytes
	SecondPerOp  Unit = "s/op" // CPU time per operation
)

// Units that readers of storage expect; no value is kept in them, see [Spoken].
const (
	BytePerSecond Unit = "B/s"  // with binary prefixes
	IOPS          Unit = "IOPS" // operations per second
)

// ErrSyntax is what every error of a parser in this package is.
var ErrSyntax = errors.New("not a value with a unit")

type prefix struct {
	name  string
	scale float64
}

// large are the decimal prefixes of rates and sizes, small those of times and ratios; largest first.
var (
	large = []prefix{{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"", 1}}
	small = []prefix{{"", 1}, {"m", 1e-3}, {"µ", 1e-6}, {"n", 1e-9}}
	// binary are those of MiB/s: no table of storage goes beyond.
	binary = []prefix{{"Mi", 1 << 20}, {"Ki", 1 << 10}, {"", 1}}
)

// Format renders v, given in the base unit u, with three significant digits and a decimal prefix:
// 9.13e9 bit/s becomes "9.13 Gbit/s", 4.52e-5 s becomes "45.2 µs". A ratio becomes a percentage.
// Values that are not finite become "-".
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
	case BytePerSecond:
		return scaled(v, u, binary)
	default:
		return scaled(v, u, large)
	}
}

func scaled(v float64, u Unit, prefixes []prefix) string {
	if v == 0 {
		return "0 " + string(u)
	}
	for _, p := range prefixes {
		// 0.9995 and not 1: 999.6 k is printed as 1.00 M.
		if math.Abs(v) >= p.scale*0.9995 {
			return digits(v/p.scale) + " " + p.name + string(u)
		}
	}
	last := prefixes[len(prefixes)-1]
	return digits(v/last.scale) + " " + last.name + string(u)
}

// digits prints v with three significant digits and no exponent.
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

// maxDecimals is where digits stops: what is smaller is 0 to a reader.
const maxDecimals = 12

// Join makes a range of two values that [Format] or [FormatFactor] wrote, with their unit once if both have the same:
// "22.7 to 22.9 µs". It is one of them where they do not differ.
func Join(lo, hi string) string {
	if lo == hi {
		return lo
	}
	if number, symbol, found := strings.Cut(lo, " "); found && strings.HasSuffix(hi, " "+symbol) {
		lo = number
	}
	return lo + " to " + hi
}

// Plural is a number of things with their noun, whose plural ends in s: "1 run", "2 runs".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// FormatChange renders a fraction as a signed percentage with one decimal: 0.0312 is "+3.1 %".
func FormatChange(fraction float64) string {
	if math.IsNaN(fraction) || math.IsInf(fraction, 0) {
		return "-"
	}
	return fmt.Sprintf("%+.1f %%", fraction*100)
}

// FactorFrom is the change from which a factor is easier to read than a percentage.
const FactorFrom = 2

// FormatFactor renders a fraction as a short signed percentage, or from threefold on as a factor: -0.254 is "-25 %",
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

// factor is a number with one decimal below a hundred, and with an exponent from ten thousand on.
func factor(v float64) string {
	switch {
	case v < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v < 9999.5:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// Spoken is a value in the unit that readers expect: of a volume MiB/s and IOPS, where all else is in bit/s and op/s.
func Spoken(v float64, u Unit, volume bool) (float64, Unit) {
	switch {
	case volume && u == BitPerSecond:
		return v / 8, BytePerSecond
	case volume && u == PerSecond:
		return v, IOPS
	}
	return v, u
}

// symbol is a spelling of a unit that people and tools use, with what one of it is in the base unit.
type symbol struct {
	unit  Unit
	scale float64
}

// symbols lists the spellings without prefix. Bits and bytes per second may carry a decimal prefix,
// bytes also a binary one, seconds a small one.
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

var prefixes = map[string]float64{
	"": 1, "n": 1e-9, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "m": 1e-3,
	"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
	"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40,
}

// Parse reads "9.4 Gbit/s", "45us", "6056 trans/s", "128KiB" or "3.4 %" and returns the value in
// its base unit. A bare number is a Count. Every error Is ErrSyntax and quotes the text.
func Parse(text string) (float64, Unit, error) {
	s := strings.TrimSpace(text)
	rest := strings.TrimLeft(s, "+-.0123456789eE")
	// "1e3" is a number, but in "5 e" or "3E" the letter belongs to the unit.
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

// lookUp finds a spelling, with or without a prefix; the spelling alone wins, so "m" alone is no unit.
func lookUp(name string) (scale float64, u Unit, ok bool) {
	if s, found := symbols[name]; found {
		return s.scale, s.unit, true
	}
	for p, factor := range prefixes {
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

// ParseAs is Parse for a place that wants one unit; a bare number is taken as being in the base unit.
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

// ParseSize reads a size in bytes: "1400", "64KiB", "128k" (1000 bytes each).
func ParseSize(text string) (int, error) {
	s := strings.TrimSpace(text)
	if s != "" && !strings.HasSuffix(s, "B") && !strings.HasSuffix(s, "bytes") {
		s += "B"
	}
	v, err := ParseAs(s, Byte)
	if err != nil {
		return 0, err
	}
	// 1.1k is 1100, although 1.1 times 1000 may not be quite.
	whole := math.Round(v)
	if whole < 0 || math.Abs(v-whole) > 1e-6 || whole > math.MaxInt32 {
		return 0, fmt.Errorf("%w: %q is not a whole number of bytes from 0 to 2 GiB", ErrSyntax, text)
	}
	return int(whole), nil
}
