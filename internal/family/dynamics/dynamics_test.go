package dynamics

import (
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for name, want := range map[string]Workload{
		"policy-deny":                          {Change: PolicyDeny, Trials: 4, Interval: time.Millisecond},
		"endpoint-gone:at=same,how=abrupt":     {Change: EndpointGone, Trials: 1, Same: true, Abrupt: true, Interval: 1e6},
		"first-packet:trials=7,interval=500µs": {Change: FirstPacket, Trials: 7, Interval: 500 * time.Microsecond},
	} {
		got, err := Parse(name)
		if err != nil || got != want || got.Title() != name {
			t.Errorf("%s is %+v, %v, and is written %s", name, got, err, got.Title())
		}
	}
	// Defaults are not written.
	if got, err := Parse("rollout:at=other,trials=1,interval=1ms"); err != nil || got.Title() != "rollout" {
		t.Errorf("%s, %v", got.Title(), err)
	}
}

func TestParseErrors(t *testing.T) {
	for name, want := range map[string]string{
		"":                         "there is no change",
		"policy-denied":            "policy-deny",
		"policy-deny:how=abrupt":   "a parameter of endpoint-gone",
		"policy-deny:at=here":      "other or same",
		"rollout:trials=0":         "trials",
		"rollout:trials=21":        "1 to 20",
		"rollout:interval=100µs":   "500µs to 100ms",
		"rollout:interval=1s":      "500µs to 100ms",
		"rollout:speed=1":          "speed",
		"rollout:trials":           "trials",
		"rollout:trials=1,trials=": "trials",
	} {
		if _, err := Parse(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, without %q", name, err, want)
		}
	}
}

// FuzzParse checks that a workload is written as a name from which Parse reads the same workload again.
func FuzzParse(f *testing.F) {
	for _, c := range Changes() {
		f.Add(string(c) + ":at=same,trials=3")
	}
	f.Add("endpoint-gone:how=abrupt,interval=2ms")
	f.Fuzz(func(t *testing.T, text string) {
		w, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(w.Title()); err != nil || again != w {
			t.Errorf("%q is %+v, and %q is %+v, %v", text, w, w.Title(), again, err)
		}
	})
}

// TestChanges checks that every change has all its properties, and a call from which the target derives the rights.
func TestChanges(t *testing.T) {
	if len(kinds) != len(Changes()) {
		t.Errorf("%d changes of %d are listed", len(Changes()), len(kinds))
	}
	for _, c := range Changes() {
		k := kinds[c]
		if k.about == "" || k.verdict == "" || k.quantity == "" || len(k.rights) == 0 || k.trials < 1 || k.each <= 0 {
			t.Errorf("%s: %+v", c, k)
		}
	}
}
