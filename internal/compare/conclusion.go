package compare

import (
	"fmt"
	"strings"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A phrases holds the words for an order by a metric: "carries most", "is fastest".
type phrases struct {
	verb, verbs             string // singular, plural
	most, least, more, less string
}

func phrasesFor(g Group) phrases {
	switch {
	case g.Better == metric.Higher && g.Unit == unit.BitPerSecond:
		return phrases{"carries", "carry", "most", "least", "more", "less"}
	case g.Better == metric.Lower && g.Unit == unit.Second:
		return phrases{"is", "are", "fastest", "slowest", "faster", "slower"}
	}
	return phrases{"is", "are", "best", "last", "better", "worse"}
}

// A wording describes a group in words. Of two targets it claims only what their standing shows: one is ahead, they are
// equivalent, or they cannot be told apart.
type wording struct {
	phrases
	names    []string
	table    standings
	delta    float64
	runs     string // unit of the data: "blocks" or "runs"
	declared bool
}

func newWording(g Group, table standings, t *runTable) wording {
	r := wording{phrases: phrasesFor(g), table: table, delta: t.e.Design.Delta, runs: "blocks", declared: g.Declared}
	if t.look == nil {
		r.runs = "runs"
	}
	for _, m := range g.Members {
		r.names = append(r.names, m.Target)
	}
	return r
}

// conclusion returns the complete text, without full stop.
func (r wording) conclusion() string {
	tiers := r.tiers()
	text := r.singleTier(tiers[0])
	if len(tiers) > 1 {
		var clauses []string
		for i, tier := range tiers {
			clauses = append(clauses, r.clause(tier, i, len(tiers)))
		}
		text = strings.Join(clauses, "; ")
	}
	if !r.declared {
		text += " (exploratory)"
	}
	return text
}

// tiers splits the order wherever each target before the split is ahead of each one after it.
func (r wording) tiers() [][]int {
	var tiers [][]int
	var tier []int
	for i := range r.names {
		tier = append(tier, i)
		if i == len(r.names)-1 || r.cutAfter(i) {
			tiers = append(tiers, tier)
			tier = nil
		}
	}
	return tiers
}

func (r wording) cutAfter(last int) bool {
	for i := 0; i <= last; i++ {
		for j := last + 1; j < len(r.names); j++ {
			if !r.table[i][j].ahead {
				return false
			}
		}
	}
	return true
}

// singleTier describes a group that is a single tier.
func (r wording) singleTier(tier []int) string {
	of := r.countPairs(tier)
	switch {
	case of.bounded == 0:
		return "too few " + r.runs + " to tell anything apart"
	case of.different > 0:
		return r.orderClaims(tier, "")
	case of.equivalent == of.pairs:
		return "all are equivalent within " + marginText(r.delta)
	case of.equivalent > 0:
		return "no two can be told apart, or they differ by less than " + deltaText(r.delta)
	}
	return "nothing can be told apart"
}

// clause describes tier i of n tiers.
func (r wording) clause(tier []int, i, n int) string {
	first, last := i == 0, i == n-1
	of := r.countPairs(tier)
	names := r.list(tier)
	if len(tier) == 1 {
		switch {
		case first:
			return names + " " + r.verb + " " + r.most
		case last:
			return names + " " + r.least
		}
		return "then " + names
	}
	if of.different > 0 {
		within := " (of these, " + r.orderClaims(tier, " of them") + ")"
		switch {
		case first:
			return fmt.Sprintf("%s %s %s than the others%s", names, r.verbs, r.more, within)
		case last:
			return fmt.Sprintf("%s %s %s than the others%s", names, r.verbs, r.less, within)
		}
		return "then " + names + within
	}
	switch {
	case first:
		return fmt.Sprintf("%s %s %s and %s", names, r.verbs, r.most, r.equivalenceWords(of))
	case last && n > 2:
		return fmt.Sprintf("%s %s %s and %s", names, r.verbs, r.least, r.equivalenceWords(of))
	case n > 3:
		return fmt.Sprintf("then %s, which %s", names, r.equivalenceWords(of))
	}
	return names + " " + r.equivalenceWords(of)
}

// A pairCounts counts the pairs of a tier by their outcome.
type pairCounts struct{ pairs, different, equivalent, bounded int }

func (r wording) countPairs(tier []int) pairCounts {
	var c pairCounts
	for k, i := range tier {
		for _, j := range tier[k+1:] {
			c.pairs++
			switch s := r.table[i][j]; s.verdict {
			case Different:
				c.different++
			case Equivalent:
				c.equivalent++
			}
			if r.table[i][j].bounded {
				c.bounded++
			}
		}
	}
	return c
}

// equivalenceWords returns the predicate for targets of which no two are different.
func (r wording) equivalenceWords(of pairCounts) string {
	switch of.equivalent {
	case of.pairs:
		return "are equivalent within " + marginText(r.delta)
	case 0:
		return "cannot be told apart"
	}
	return "cannot be told apart or differ by less than " + deltaText(r.delta)
}

// orderClaims lists for each target of a tier the ones that it is ahead of, then describes all other pairs. whose
// follows "any other two": "" or " of them".
func (r wording) orderClaims(tier []int, whose string) string {
	var claims []string
	for _, i := range tier {
		var behind []int
		for _, j := range tier {
			if r.table[i][j].ahead {
				behind = append(behind, j)
			}
		}
		if len(behind) > 0 {
			claims = append(claims, fmt.Sprintf("%s %s %s than %s", r.names[i], r.verb, r.more, r.list(behind)))
		}
	}
	text := strings.Join(claims, ", ")
	if rest := r.remainingWords(r.countPairs(tier), whose); rest != "" {
		text += "; " + rest
	}
	return text
}

// remainingWords describes the pairs in which neither target is ahead, "" if there are none.
func (r wording) remainingWords(of pairCounts, whose string) string {
	left := of.pairs - of.different
	switch {
	case left == 0:
		return ""
	case of.equivalent == left:
		return fmt.Sprintf("any other two%s are equivalent within %s", whose, marginText(r.delta))
	case of.equivalent == 0:
		return fmt.Sprintf("no other two%s can be told apart", whose)
	}
	return fmt.Sprintf("no other two%s can be told apart, or they differ by less than %s", whose, deltaText(r.delta))
}

// list joins the names of targets: "a, b and c".
func (r wording) list(of []int) string {
	var names []string
	for _, i := range of {
		names = append(names, r.names[i])
	}
	return prose.Enumerate(names)
}
