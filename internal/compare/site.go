package compare

import (
	"fmt"
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// siteDoubts repeats the warnings of sites, those of a kind once for each target.
func siteDoubts(sites []result.Site) []string {
	type doubt struct {
		target string
		kind   result.Kind
	}
	var order []doubt
	all, having := map[string]int{}, map[doubt][]result.Site{}
	for _, s := range sites {
		all[s.Target]++
		for _, k := range kinds(s.Warnings) {
			d := doubt{s.Target, k}
			if len(having[d]) == 0 {
				order = append(order, d)
			}
			having[d] = append(having[d], s)
		}
	}
	sentences := []string{}
	for _, d := range order {
		texts, example := textsOf(d.kind, having[d]), ""
		if len(texts) > 1 {
			example = ", for example"
		}
		count := fmt.Sprintf("%d of %s on %s", len(having[d]), unit.Plural(all[d.target], "site"), d.target)
		sentences = append(sentences, count+example+": "+stop(texts[0]))
	}
	return sentences
}

// textsOf are the texts of a kind of warning, each once.
func textsOf(want result.Kind, sites []result.Site) []string {
	var texts []string
	for _, s := range sites {
		for _, w := range s.Warnings {
			if w.Kind() == want && !slices.Contains(texts, w.Text) {
				texts = append(texts, w.Text)
			}
		}
	}
	return texts
}
