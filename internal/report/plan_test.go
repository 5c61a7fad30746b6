package report

import "testing"

func TestUpTo(t *testing.T) {
	for v, want := range map[float64]string{2: "2", 2.01: "2.1", 0.0431: "0.044", 4.3: "4.3", 12.1: "13", 9.99: "10"} {
		if got := roundUp(v); got != want {
			t.Errorf("%g: %s, want %s", v, got, want)
		}
	}
}
