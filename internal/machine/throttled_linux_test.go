package machine

import "testing"

func TestParseThrottled(t *testing.T) {
	const stat = "usage_usec 12\nnr_periods 5\nnr_throttled 3\nthrottled_usec 9\n"
	for text, want := range map[string]int64{
		stat: 3, "nr_periods 5\nnr_throttled 3\nthrottled_time 9\n": 3, "": 0, "nr_throttled": 0,
		"nr_throttled x": 0, "nr_throttled -1": 0, "nr_throttled 1 2": 0, "nr_periods 5": 0, "nr 1": 0,
	} {
		if got := parseThrottled(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if n := Throttled(); n < 0 {
		t.Errorf("throttled %d times", n)
	}
}
