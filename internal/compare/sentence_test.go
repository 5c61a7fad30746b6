package compare

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

// TestSentencesCarryTheirEvidence checks that a sentence has the change, its interval, delta and the number of blocks
// for every verdict, no p, and the word exploratory for exploratory rows only.
func TestSentencesCarryTheirEvidence(t *testing.T) {
	signedPercent := regexp.MustCompile(`[+-]?\d+\.\d+ %`)
	for _, role := range []result.Role{result.Primary, result.Exploratory} {
		seen := []Verdict{}
		for _, ratios := range [][]float64{
			spreadOver(1.09, 1.11, 11), spreadOver(1.01, 1.03, 11), spreadOver(0.99, 1.01, 11), spreadOver(1.002, 1.01, 11),
			spreadOver(0.8, 1.2, 11), spreadOver(1.4, 1.5, 5),
		} {
			w := scenario(ratios...)
			w.e.Cases[0].Role = role
			r := compare(t, w, nil).Comparisons[0]
			seen = append(seen, r.Verdict)
			for _, part := range []string{" confidence", "2 %", " blocks"} {
				text := strings.Replace(r.Sentence, "95 % CI", "95 % confidence", 1)
				if !strings.Contains(text, part) {
					t.Errorf("no %q in %q", part, r.Sentence)
				}
			}
			if len(signedPercent.FindAllString(r.Sentence, -1)) < 3 && r.CI.Bounded() {
				t.Errorf("no change with an interval in %q", r.Sentence)
			}
			if strings.Contains(r.Sentence, "p =") || strings.HasPrefix(r.Sentence,
				"Exploratory") != (role == result.Exploratory) || !strings.Contains(r.Sentence, string(r.Verdict)) {
				t.Errorf("%s: %q", role, r.Sentence)
			}
		}
		for _, v := range []Verdict{Different, Equivalent, Undecided} {
			if !slices.Contains(seen, v) {
				t.Errorf("%s: nothing is %s", role, v)
			}
		}
	}
}
