package unit_test

import (
	"fmt"

	"github.com/knotmeter/knotmeter/internal/unit"
)

// Values are kept in base units; only text has prefixes.
func ExampleParseAs() {
	rate, err := unit.ParseAs("9.4 Gbit/s", unit.BitPerSecond)
	fmt.Println(rate, err)
	_, err = unit.ParseAs("9.4 Gbit/s", unit.Second)
	fmt.Println(err)
	fmt.Println(unit.Format(rate, unit.BitPerSecond))
	// Output:
	// 9.4e+09 <nil>
	// not a value with a unit: "9.4 Gbit/s" is in bit/s, wanted s
	// 9.40 Gbit/s
}

// Text about volumes has the units that are usual for storage.
func ExampleUnit_OfVolume() {
	fmt.Println(unit.Format(1.2e9, unit.BitPerSecond.OfVolume()))
	fmt.Println(unit.Format(16000, unit.PerSecond.OfVolume()))
	// Output:
	// 143 MiB/s
	// 16.0 kIOPS
}

// Small changes are percentages; large increases are easier to read as factors.
func ExampleFormatFactor() {
	fmt.Println(unit.FormatFactor(-0.254), unit.FormatFactor(0.031), unit.FormatFactor(9.2))
	// Output:
	// -25 % +3.1 % ×10.2
}
