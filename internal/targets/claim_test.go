package targets

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestCheckClaims(t *testing.T) {
	since := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	own := Claim{Experiment: "2026-12-01-a1b2", By: "ann@desk", Since: since}
	other := Claim{Experiment: "2026-12-01-c3d4", By: "ben@lap", Since: since}
	plan := Plan{Experiment: own.Experiment}
	for _, found := range [][]Claim{nil, {own}, {own, own}} {
		if warnings, err := plan.CheckClaims("the cluster", found); len(warnings) != 0 || err != nil {
			t.Errorf("%v: %q, %v", found, warnings, err)
		}
	}
	_, err := plan.CheckClaims("the cluster", []Claim{own, other, {}, other})
	want := "the cluster is in use by an experiment that does not say whose it is and " +
		"the experiment 2026-12-01-c3d4 of ben@lap, since 2026-12-01 08:00:00 UTC: " +
		"the two would disturb each other; wait for its end, or measure all the same with --share"
	if !errors.Is(err, ErrBusy) || err.Error() != want {
		t.Errorf("%v", err)
	}
	plan.Share = true
	later := other // the claim of another of its targets
	later.Since = since.Add(time.Second)
	warnings, err := plan.CheckClaims("the cluster", []Claim{own, later, other})
	const shared = "was shared with the experiment 2026-12-01-c3d4 of ben@lap, since 2026-12-01 08:00:00 UTC"
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], shared) {
		t.Errorf("%q, %v", warnings, err)
	}
}

// TestParseClaim checks that claims of other users are validated and escaped.
func TestParseClaim(t *testing.T) {
	c := Claim{Experiment: "x", By: "ann@desk", Since: time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC), Version: "v1"}
	if again, err := ParseClaim(c.Text()); err != nil || again != c {
		t.Errorf("%+v, %v", again, err)
	}
	evil, err := ParseClaim(`{"experiment":"\u001b]0;x\u0007a\nb","by":"` + strings.Repeat("x", 200) + `"}`)
	if err != nil || evil.Experiment != `\x1b]0;x\aa\nb` || len(evil.By) > 110 {
		t.Errorf("%+v, %v", evil, err)
	}
	for _, text := range []string{"", "no", "[]", `{"since":7}`} {
		if _, err := ParseClaim(text); err == nil {
			t.Errorf("%q is no claim", text)
		}
	}
}
