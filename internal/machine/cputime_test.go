package machine

import (
	"errors"
	"strings"
	"testing"
)

const cpuStatText = `cpu  10 20 30 40 50 60 70 80 0 0
cpu0 1 2 3 4 5 6 7 8 0 0
cpu12 100 0 0 300 0 0 0 0 0 0
intr 12345 0
ctxt 99
`

func TestParseCPUStat(t *testing.T) {
	stat, err := ParseCPUStat(strings.NewReader(cpuStatText))
	if err != nil {
		t.Fatal(err)
	}
	if len(stat) != 2 || stat[0][SoftIRQ] != 0.07 || stat[0][Steal] != 0.08 ||
		stat[12].Busy() != 1 || stat[12].Sum() != 4 {
		t.Errorf("%v", stat)
	}
	for _, bad := range []string{"", "cpu 1 2", "cpu0 1 2 3\n", "cpu0 1 2 3 4 5 6 7 x\n", "cpux 1 2 3 4 5 6 7 8\n"} {
		if _, err := ParseCPUStat(strings.NewReader(bad)); !errors.Is(err, errCPUStat) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzParseCPUStat(f *testing.F) {
	f.Add(cpuStatText)
	f.Fuzz(func(t *testing.T, text string) {
		stat, err := ParseCPUStat(strings.NewReader(text))
		if (err == nil) != (len(stat) > 0) || err != nil && !errors.Is(err, errCPUStat) {
			t.Errorf("%v, %v", stat, err)
		}
	})
}
