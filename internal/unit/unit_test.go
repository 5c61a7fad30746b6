package unit

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

func units() []Unit {
	return []Unit{BitPerSecond, Second, PerSecond, Byte, Ratio, Count, SecondPerGB, SecondPerOp}
}

func TestFormat(t *testing.T) {
	for _, test := range []struct {
		v    float64
		u    Unit
		want string
	}{
		{9.13e9, BitPerSecond, "9.13 Gbit/s"},
		{999.4e3, BitPerSecond, "999 kbit/s"},
		{999.6e3, BitPerSecond, "1.00 Mbit/s"},
		{-9.13e9, BitPerSecond, "-9.13 Gbit/s"},
		{0, BitPerSecond, "0 bit/s"},
		{0.25, BitPerSecond, "0.25 bit/s"},
		{1e18, BitPerSecond, "1000000 Tbit/s"},
		{4.52e-5, Second, "45.2 µs"},
		{9.996e-4, Second, "1.00 ms"},
		{1.5, Second, "1.50 s"},
		{120, Second, "120 s"},
		{3e-13, Second, "0.0003 ns"},
		{1e-15, Second, "0.000001 ns"},
		{1e-30, Second, "0 ns"},
		{0.034, Ratio, "3.40 %"},
		{1e-7, Ratio, "0.00001 %"},
		{1, Ratio, "100 %"},
		{12, Count, "12.0"},
		{1234567, Count, "1234567"},
		{73586, PerSecond, "73.6 kop/s"},
		{131072, Byte, "131 kB"},
		{0.0124, SecondPerGB, "12.4 ms/GB"},
		{1.3e-5, SecondPerOp, "13.0 µs/op"},
		{math.NaN(), Second, "-"},
		{math.Inf(-1), Ratio, "-"},
	} {
		if got := Format(test.v, test.u); got != test.want {
			t.Errorf("Format(%g, %s) is %q, wanted %q", test.v, test.u, got, test.want)
		}
	}
}

func TestFormatChange(t *testing.T) {
	for v, want := range map[float64]string{0.0312: "+3.1 %",
		-0.297: "-29.7 %", 0: "+0.0 %", 12: "+1200.0 %", math.Inf(1): "-"} {
		if got := FormatChange(v); got != want {
			t.Errorf("FormatChange(%g) is %q, wanted %q", v, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, test := range []struct {
		text string
		v    float64
		u    Unit
	}{
		{"9.4 Gbit/s", 9.4e9, BitPerSecond},
		{"9.4Gbits/sec", 9.4e9, BitPerSecond},
		{"937 Mbps", 937e6, BitPerSecond},
		{"937.02 10^6bits/s", 937.02e6, BitPerSecond},
		{"1.25 GB/s", 10e9, BitPerSecond},
		{"100 MiB/s", 100 * 8 << 20, BitPerSecond},
		{"45us", 45e-6, Second},
		{"45 µs", 45e-6, Second},
		{"45 μs", 45e-6, Second},
		{"12 msec", 0.012, Second},
		{"6056 trans/s", 6056, PerSecond},
		{"3.2k IOPS", 0, ""}, // the prefix belongs to the unit
		{"3.2 kIOPS", 3200, PerSecond},
		{"10k/s", 1e4, PerSecond},
		{"128KiB", 128 << 10, Byte},
		{"1.5 MBytes", 1.5e6, Byte},
		{"3.4 %", 0.034, Ratio},
		{"3.4%", 0.034, Ratio},
		{"-3.4 percent", -0.034, Ratio},
		{"0.5 ratio", 0.5, Ratio},
		{"1e3", 1000, Count},
		{"1E3 B", 1000, Byte},
		{" 7 ", 7, Count},
		{"+7", 7, Count},
		{"2 ms/GB", 0.002, SecondPerGB},
	} {
		v, u, err := Parse(test.text)
		if test.u == "" {
			if !errors.Is(err, ErrSyntax) {
				t.Errorf("Parse(%q) is %g %s, %v; wanted an error", test.text, v, u, err)
			}
			continue
		}
		if err != nil || u != test.u || math.Abs(v-test.v) > 1e-12*math.Abs(test.v) {
			t.Errorf("Parse(%q) is %g %s, %v; wanted %g %s", test.text, v, u, err, test.v, test.u)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, text := range []string{"", " ", "s", "5 m", "5 e", "5x", "0x10", "1,5 s", "1-2 s",
		"NaN", "inf", "1e999", "1e308 TB", "5 k%", "5 kratio", "5 k", "--5", "5 Gbit/s/s", "1_000"} {
		if v, u, err := Parse(text); !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
			t.Errorf("Parse(%q) is %g %s, %v; wanted an error that quotes it", text, v, u, err)
		}
	}
}

func TestParseAs(t *testing.T) {
	if v, err := ParseAs("200", Second); err != nil || v != 200 {
		t.Errorf("a bare number: %g, %v", v, err)
	}
	if _, err := ParseAs("200 B", Second); !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), "wanted s") {
		t.Errorf("bytes for seconds: %v", err)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int{"1400": 1400, "64KiB": 65536, "64Ki": 65536,
		"128k": 128000, "1.1k": 1100, "4.1M": 4100000, "0": 0, "10 bytes": 10, "1e3": 1000} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) is %d, %v; wanted %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1", "1.5", "3GiB", "9.4 Gbit/s", "x", "1.0001k"} {
		if got, err := ParseSize(text); !errors.Is(err, ErrSyntax) {
			t.Errorf("ParseSize(%q) is %d, %v; wanted an error", text, got, err)
		}
	}
}

// FuzzRoundTrip checks that formatted values can be parsed, to the three digits that were written.
func FuzzRoundTrip(f *testing.F) {
	for i, v := range []float64{9.13e9, 4.52e-5, 0.999, 0.9995, 999.5, 1e-9, -3.4, 0} {
		f.Add(v, uint8(i))
	}
	f.Fuzz(func(t *testing.T, v float64, choice uint8) {
		u := units()[int(choice)%len(units())]
		text := Format(v, u)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			if text != "-" {
				t.Errorf("%g is printed as %q", v, text)
			}
			return
		}
		got, back, err := Parse(text)
		if math.Abs(v) > 1e300 { // may be too large by the prefix
			return
		}
		if err != nil || back != u {
			t.Fatalf("%g %s is printed as %q and read as %g %s, %v", v, u, text, got, back, err)
		}
		if a := math.Abs(v); a > 1e-9 && math.Abs(got-v) > 0.0051*a {
			t.Errorf("%g %s is printed as %q and read as %g", v, u, text, got)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"9.4 Gbit/s", "45us", "1e3", "5 e", "3.4 %", "128KiB", "1e308 TB", "\x00", "µ"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, u, err := Parse(text)
		switch {
		case err != nil && !errors.Is(err, ErrSyntax):
			t.Errorf("%q: %v is not ErrSyntax", text, err)
		case err == nil && (u == "" || math.IsNaN(v) || math.IsInf(v, 0)):
			t.Errorf("%q is %g %q", text, v, u)
		}
		if size, err := ParseSize(text); err == nil && (size < 0 || size > math.MaxInt32) {
			t.Errorf("ParseSize(%q) is %d", text, size)
		}
	})
}

func ExampleFormat() {
	fmt.Println(Format(9.13e9, BitPerSecond))
	fmt.Println(Format(4.52e-5, Second))
	fmt.Println(Format(0.034, Ratio))
	// Output:
	// 9.13 Gbit/s
	// 45.2 µs
	// 3.40 %
}

func ExampleParse() {
	v, u, err := Parse("128KiB")
	fmt.Println(v, u, err)
	_, _, err = Parse("5 furlongs")
	fmt.Println(err)
	// Output:
	// 131072 B <nil>
	// not a value with a unit: "5 furlongs" has an unknown unit
}

func ExamplePlural() {
	fmt.Println(Plural(0, "run"), Plural(1, "run"), Plural(2, "run"))
	// Output:
	// 0 runs 1 run 2 runs
}
