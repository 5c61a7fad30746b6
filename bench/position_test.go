package main

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestPosition checks that an effect of the position is found if and only if there is one.
func TestPosition(t *testing.T) {
	for _, test := range []struct {
		late float64 // factor on values of the later half
		want string
	}{{1, ""}, {1.05, "1 effects are above 1 %"}} {
		random := rand.New(rand.NewPCG(1, 2))
		values := map[series][]placedValue{}
		for _, target := range []string{"a", "b"} {
			key := series{"d", "p/x", target}
			for i := range 60 {
				p := placedValue{position: float64(i%4) / 3, log: 3 + 0.005*random.NormFloat64()}
				if p.position > 0.5 {
					p.log += math.Log(test.late)
				}
				if i%4 > 0 {
					p.after = []string{"p/y", "p/z"}[random.IntN(2)]
				}
				values[key] = append(values[key], p)
			}
		}
		var out strings.Builder
		err := writeEffects(&out, effects(values))
		if got := errorText(err); got != test.want || strings.Count(out.String(), "\n") != 1+3 {
			t.Errorf("%g: %q, want %q\n%s", test.late, got, test.want, out.String())
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
