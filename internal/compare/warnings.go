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

// A warningCounts holds the warnings of many runs or sites by kind.
type warningCounts map[result.Kind]countedWarning

// A countedWarning is a warning with the text of its first occurrence.
type countedWarning struct {
	count       int // runs or sites that have it
	text        string
	textsDiffer bool // some occurrences have another text
}

// add counts the warnings of one more run or site, and returns the kinds that are new, sorted.
func (c warningCounts) add(warnings []result.Warning) []result.Kind {
	var kinds, fresh []result.Kind
	for _, w := range warnings {
		k := w.Kind()
		h, known := c[k]
		switch {
		case !known:
			h.text, fresh = w.Text, append(fresh, k)
		case h.text != w.Text:
			h.textsDiffer = true
		}
		if !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
			h.count++
		}
		c[k] = h
	}
	slices.SortFunc(fresh, compareKinds)
	return fresh
}

func compareKinds(x, y result.Kind) int {
	return cmp.Or(cmp.Compare(x.Code, y.Code), cmp.Compare(x.Metric, y.Metric), cmp.Compare(x.Text, y.Text))
}

// sentence returns the warning as a sentence about the given runs or sites.
func (h countedWarning) sentence(who string) string {
	if h.textsDiffer {
		who += ", for example"
	}
	return who + ": " + endSentence(h.text)
}

// endSentence ends a text with exactly one full stop.
func endSentence(text string) string { return strings.TrimRight(text, ". ") + "." }

// warningsOfAll returns the warnings that all of at least two runs have.
func warningsOfAll(runs []*result.Run) warningCounts {
	all := warningCounts{}
	for _, r := range runs {
		all.add(r.Warnings)
	}
	maps.DeleteFunc(all, func(_ result.Kind, h countedWarning) bool { return h.count < len(runs) || h.count < 2 })
	return all
}

// sentences returns the warnings as sentences about all runs.
func (c warningCounts) sentences() []string {
	sentences := []string{}
	for _, k := range slices.SortedFunc(maps.Keys(c), compareKinds) {
		sentences = append(sentences, "All runs: "+endSentence(c[k].text))
	}
	return sentences
}

// siteWarnings returns the warnings of sites, those of a kind once for each target.
func siteWarnings(sites []result.Site) []string {
	type doubt struct {
		target string
		kind   result.Kind
	}
	var order []doubt
	all, warned := map[string]int{}, map[string]warningCounts{}
	for _, s := range sites {
		if all[s.Target]++; warned[s.Target] == nil {
			warned[s.Target] = warningCounts{}
		}
		for _, k := range warned[s.Target].add(s.Warnings) {
			order = append(order, doubt{s.Target, k})
		}
	}
	sentences := []string{}
	for _, d := range order {
		h := warned[d.target][d.kind]
		sentences = append(sentences, h.sentence(fmt.Sprintf("%d of %s on %s", h.count, unit.Plural(all[d.target],
			"site"), d.target)))
	}
	return sentences
}
