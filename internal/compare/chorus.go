package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A chorus is what many runs or sites warn of, by kind.
type chorus map[result.Kind]heard

// A heard warning has the text of the first that gave it.
type heard struct {
	n       int // runs or sites that have it
	text    string
	differs bool // the texts of others are not the same
}

// add hears the warnings of one more run or site, and returns the kinds that are new, sorted.
func (c chorus) add(warnings []result.Warning) []result.Kind {
	var kinds, fresh []result.Kind
	for _, w := range warnings {
		k := w.Kind()
		h, known := c[k]
		switch {
		case !known:
			h.text, fresh = w.Text, append(fresh, k)
		case h.text != w.Text:
			h.differs = true
		}
		if !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
			h.n++
		}
		c[k] = h
	}
	slices.SortFunc(fresh, compareKinds)
	return fresh
}

func compareKinds(x, y result.Kind) int {
	return cmp.Or(cmp.Compare(x.Code, y.Code), cmp.Compare(x.Metric, y.Metric), cmp.Compare(x.Text, y.Text))
}

// from is the sentence that they say it.
func (h heard) from(who string) string {
	if h.differs {
		who += ", for example"
	}
	return who + ": " + stop(h.text)
}

// stop ends a text with a full stop.
func stop(text string) string { return strings.TrimRight(text, ". ") + "." }

// inUnison is what every one of several runs warns of.
func inUnison(runs []*result.Run) chorus {
	all := chorus{}
	for _, r := range runs {
		all.add(r.Warnings)
	}
	maps.DeleteFunc(all, func(_ result.Kind, h heard) bool { return h.n < len(runs) || h.n < 2 })
	return all
}

// ofAllRuns are the sentences of a chorus in unison.
func (c chorus) ofAllRuns() []string {
	sentences := []string{}
	for _, k := range slices.SortedFunc(maps.Keys(c), compareKinds) {
		sentences = append(sentences, "All runs: "+stop(c[k].text))
	}
	return sentences
}

// siteDoubts repeats the warnings of sites, those of a kind once for each target.
func siteDoubts(sites []result.Site) []string {
	type doubt struct {
		target string
		kind   result.Kind
	}
	var order []doubt
	all, warned := map[string]int{}, map[string]chorus{}
	for _, s := range sites {
		if all[s.Target]++; warned[s.Target] == nil {
			warned[s.Target] = chorus{}
		}
		for _, k := range warned[s.Target].add(s.Warnings) {
			order = append(order, doubt{s.Target, k})
		}
	}
	sentences := []string{}
	for _, d := range order {
		h := warned[d.target][d.kind]
		sentences = append(sentences, h.from(fmt.Sprintf("%d of %s on %s", h.n, unit.Plural(all[d.target],
			"site"), d.target)))
	}
	return sentences
}
