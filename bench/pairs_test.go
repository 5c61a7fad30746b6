package main

import (
	"errors"
	"strings"
	"testing"
)

// TestPairs checks that the order alternates, every pair is shown, and the ratio is that of the medians.
func TestPairs(t *testing.T) {
	var order strings.Builder
	side := func(name string, values ...float64) func() (float64, error) {
		return func() (float64, error) {
			order.WriteString(name)
			v := values[0]
			values = values[1:]
			return v, nil
		}
	}
	shown := 0
	pairs, err := interleave(3, side("o", 1, 4, 9), side("t", 2, 2, 3), func(pair[float64]) { shown++ })
	if err != nil || order.String() != "ottoot" || shown != 3 {
		t.Fatalf("%v, order %s, %d shown", err, &order, shown)
	}
	got := ratioOf(pairs, func(v float64) float64 { return v })
	if want := (ratio{ours: 4, theirs: 2, ofMedians: 2, q1: 1.25, q3: 2.5}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	failing := func() (float64, error) { return 0, errors.New("no disk") }
	if _, err := interleave(1, side("o", 1), failing, nil); err == nil {
		t.Error("a run that failed is no error")
	}
}
