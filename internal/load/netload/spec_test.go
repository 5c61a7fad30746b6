package netload

import (
	"testing"
	"time"
)

func TestResolvedLimits(t *testing.T) {
	for _, s := range []Spec{
		{Kind: TCPRR, Duration: -1},
		{Kind: TCPRR, Duration: 25 * time.Hour},
		{Kind: TCPRR, Warmup: 2 * time.Hour},
		{Kind: TCPRR, Flows: -1},
		{Kind: "x"},
		{Kind: UDPUnpaced, Rate: 1},
	} {
		if _, err := s.Resolved(); err == nil {
			t.Errorf("%+v has no error", s)
		}
	}
	// Resolved is idempotent.
	for _, k := range Kinds() {
		once, err := Spec{Kind: k, Duration: time.Second}.Resolved()
		if err != nil {
			t.Fatal(err)
		}
		if twice, err := once.Resolved(); err != nil || twice != once {
			t.Errorf("%+v resolved again is %+v, %v", once, twice, err)
		}
	}
}
