package compare

import (
	"cmp"
	"maps"
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A warningCounts holds the warnings of many runs or sites by kind.
type warningCounts map[result.Kind]countedWarning

// A countedWarning is a warning with its first occurrence.
type countedWarning struct {
	count       int // runs or sites that have it
	first       result.Warning
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
			h.first, fresh = w, append(fresh, k)
		case h.first.Text != w.Text:
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

// warning returns a warning with the given code about the occurrences.
func (h countedWarning) warning(code Code, counts ...TargetCount) Warning {
	return Warning{Code: code, Recorded: &h.first, Varies: h.textsDiffer, Counts: counts}
}

// warningsOfAll returns the warnings that all of at least two runs have.
func warningsOfAll(runs []*result.Run) warningCounts {
	all := warningCounts{}
	for _, r := range runs {
		all.add(r.Warnings)
	}
	maps.DeleteFunc(all, func(_ result.Kind, h countedWarning) bool { return h.count < len(runs) || h.count < 2 })
	return all
}

// warnings returns the counted warnings as warnings about all runs, sorted.
func (c warningCounts) warnings() []Warning {
	var list []Warning
	for _, k := range slices.SortedFunc(maps.Keys(c), compareKinds) {
		list = append(list, c[k].warning(RunsWarn))
	}
	return list
}

// siteWarnings returns the warnings of sites, those of a kind once for each target.
func siteWarnings(sites []result.Site) []Warning {
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
	var list []Warning
	for _, d := range order {
		h := warned[d.target][d.kind]
		list = append(list, h.warning(SitesWarn, TargetCount{d.target, h.count, all[d.target]}))
	}
	return list
}

// experimentWarnings returns the warnings that an experiment recorded.
func experimentWarnings(e result.Experiment) []Warning {
	list := []Warning{}
	for i := range e.Warnings {
		list = append(list, Warning{Code: ExperimentWarns, Recorded: &e.Warnings[i]})
	}
	return list
}
