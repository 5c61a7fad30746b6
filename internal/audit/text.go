package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// linksApart is the factor by which the links of compared targets may differ.
const linksApart = 1.2

// textRules find what a source omits.
var textRules = []Rule{
	{Name: "no-counts", Severity: Warning, checkAll: noCounts,
		About: "Numbers state how many runs they are from; six runs a side can be distinguished without assuming the " +
			"shape of the noise.",
		Why: "One run is no basis for a ranking: the next one gives another number, by an unknown difference."},
	{Name: "peak", Severity: Warning, checkAll: checkPeaksOnly,
		About: "A throughput or a latency is not given by its maximum alone.",
		Why:   "A peak happened once. It grows with the duration of the measurement, and is not what a user gets."},
	{Name: "unlisted", Severity: Warning, checkAll: unlisted,
		About: "The configurations that a text lists as tested are those of its tables.",
		Why: "Numbers of a configuration that the set-up does not list cannot be judged, and a configuration without " +
			"numbers was left out for a reason."},
	{Name: "no-data", Severity: Warning, checkAll: noData,
		About: "A table has figures in each of its columns and cells.",
		Why:   "What is missing may have failed, or was left out for a reason: the table does not compare it."},
	{Name: "links-differ", Severity: Warning, checkAll: linksDiffer,
		About: "Compared targets have links within 20 % of each other.",
		Why: "Otherwise the machines are compared, not their software: the slower link limits its side whatever the " +
			"software does."},
	{Name: "above-storage-limit", Severity: Warning, checkAll: aboveStorage,
		About: "Operations and bytes per second of storage stay within what the class of the volume and the size of the VM " +
			"promise, the smaller of both, plus 5 %.",
		Why: "More than the limit comes from a cache or a burst credit, and ends with it."},
}

// noCounts checks each table, and the measured runs.
func noCounts(recs *records) (found []Finding, checked int) {
	for _, table := range recs.tables {
		cells := slices.DeleteFunc(slices.Clone(recs.cells[table]), noFigure)
		if len(cells) == 0 {
			continue
		}
		checked++
		without, figures, places := 0, 0, []string{}
		for _, r := range cells {
			n := len(slices.DeleteFunc(slices.Clone(r.Values), isSpread))
			figures += n
			if recs.runsBehind(r) < fewBlocks {
				without += n
				places = append(places, r.Fact(FactPlace))
			}
		}
		if without > 0 {
			found = append(found, Finding{Place: firstPlace(places), Saw: fewRunsText(table, cells, without, figures)})
		}
	}
	findings, n := fewRuns(recs)
	return append(found, findings...), checked + n
}

// runsBehind returns how many runs a cell aggregates, or the number of runs of its kind if the table lists each.
func (recs *records) runsBehind(r *result.Run) int {
	if n := count(r.Facts, FactRuns); n > 0 || r.Fact(FactRow) != "" {
		return n
	}
	return len(recs.byCase[r.Case][r.Target])
}

// fewRunsText describes which figures have no counts or small ones.
func fewRunsText(table string, cells []*result.Run, without, figures int) string {
	least, spreads := 0, false
	for _, r := range cells {
		spreads = spreads || slices.ContainsFunc(r.Values, isSpread)
		if n := count(r.Facts, FactRuns); n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	some := fmt.Sprintf("%d of %d figures of %s", without, figures, table)
	switch {
	case (least == 0 || least >= fewBlocks) && spreads:
		return some + " without the number of their runs."
	case least == 0 || least >= fewBlocks:
		return some + " without the number of their runs, and without a spread."
	}
	return fmt.Sprintf("%s from fewer than %d runs, down to %d.", some, fewBlocks, least)
}

// fewRuns counts the measured cases with fewer runs than any test needs, in one finding.
func fewRuns(recs *records) (found []Finding, checked int) {
	few, least := 0, 0
	for _, runs := range recs.pairs() {
		runs = slices.DeleteFunc(slices.Clone(runs), published)
		if len(runs) == 0 {
			continue
		}
		checked++
		if len(runs) < fewBlocks {
			few++
			if least == 0 || len(runs) < least {
				least = len(runs)
			}
		}
	}
	if few == 0 {
		return nil, checked
	}
	f := Finding{Severity: Note, Saw: fmt.Sprintf(
		"Fewer than %d valid runs in %d of %d pairs of case and target; the least is %d.", fewBlocks, few, checked, least)}
	if least == 1 {
		f.Severity = Warning
	}
	return []Finding{f}, checked
}

// isSpread reports whether a value is a standard deviation over runs.
func isSpread(v result.Value) bool { return strings.HasSuffix(v.Metric, SpreadSuffix) }

// claimed reports whether a run is a change that a table claims.
func claimed(r *result.Run) bool {
	return slices.ContainsFunc(r.Values, func(v result.Value) bool { return strings.HasSuffix(v.Metric, ChangeSuffix) })
}

// noFigure reports whether a run has no measured value.
func noFigure(r *result.Run) bool { return len(r.Values) == 0 || claimed(r) }

func checkPeaksOnly(recs *records) (found []Finding, checked int) {
	for of, runs := range recs.pairs() {
		runs = slices.DeleteFunc(slices.Clone(runs), noFigure)
		if len(runs) == 0 {
			continue
		}
		checked++
		if !slices.ContainsFunc(runs, func(r *result.Run) bool { return !onlyPeak(r) }) {
			v := runs[0].Values[0]
			found = append(found, Finding{Case: of.name, Target: of.target, Runs: ids(runs), Place: runs[0].Fact(FactPlace),
				Saw: fmt.Sprintf("The only figure is a maximum: %s.", unit.Format(v.Number, v.Unit))})
		}
	}
	return found, checked
}

func onlyPeak(r *result.Run) bool {
	if r.Fact(FactAggregate) == AggregateMax {
		return true
	}
	return !slices.ContainsFunc(r.Values, func(v result.Value) bool { return v.Metric != metric.Max })
}

// unlisted compares the columns of tables with the configurations that the text lists.
func unlisted(recs *records) (found []Finding, checked int) {
	var listed []string
	for name, facts := range recs.Facts {
		if result.FactOf(facts, FactListed) != "" {
			listed = append(listed, name)
		}
	}
	if len(listed) == 0 {
		return nil, 0
	}
	slices.Sort(listed)
	seen := map[string]string{}
	for _, r := range recs.runs {
		if _, ok := seen[r.Target]; !ok && len(r.Values) > 0 {
			seen[r.Target] = r.Fact(FactPlace)
		}
	}
	for _, t := range recs.Experiment.Targets {
		place, has := seen[t.Name]
		at := result.FactOf(recs.Facts[t.Name], FactListed)
		switch {
		case has && at == "":
			found = append(found, Finding{Target: t.Name, Place: place,
				Saw: fmt.Sprintf("%s has figures and is not among the %d configurations listed as tested.", t.Name, len(listed))})
		case !has && at != "":
			found = append(found, Finding{Target: t.Name, Place: at,
				Saw: fmt.Sprintf("%s is listed as tested and has no figures.", t.Name)})
		}
	}
	return found, len(listed)
}

// noData collects the columns and cells of tables without figures.
func noData(recs *records) (found []Finding, checked int) {
	var cells []*result.Run
	for _, r := range recs.gaps {
		if r.Fact(FactGap) == GapCell {
			cells = append(cells, r)
			continue
		}
		found = append(found, Finding{Place: r.Fact(FactPlace),
			Saw: fmt.Sprintf("The column %q has no figure.", r.Fact(FactRow))})
	}
	if len(cells) > 0 {
		found = append(found, Finding{Place: cells[0].Fact(FactPlace),
			Saw: unit.Plural(len(cells), "empty cell") + " among figures: " + linesOf(cells)})
	}
	checked = len(recs.gaps)
	for _, runs := range recs.cells {
		checked += len(runs)
	}
	return found, checked
}

// linesOf lists the lines of the runs' places, at most eight.
func linesOf(runs []*result.Run) string {
	var lines []string
	for _, r := range runs {
		place := r.Fact(FactPlace)
		line := place[strings.LastIndexByte(place, ':')+1:]
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	word := "line"
	if len(lines) > 1 {
		word = "lines"
	}
	more := ""
	if left := len(lines) - 8; left > 0 {
		lines, more = lines[:8], fmt.Sprintf(" and %d more", left)
	}
	return word + " " + strings.Join(lines, ", ") + more + "."
}

func linksDiffer(recs *records) (found []Finding, checked int) {
	var slow, fast string
	var least, most float64
	for _, t := range recs.Experiment.Targets {
		link := quantity(FactLink, unit.BitPerSecond, recs.Facts[t.Name])
		if link == 0 {
			link = quantity(FactMachineLink, unit.BitPerSecond, recs.Facts[t.Name])
		}
		if link == 0 {
			continue
		}
		checked++
		if least == 0 || link < least {
			slow, least = t.Name, link
		}
		if link > most {
			fast, most = t.Name, link
		}
	}
	if checked < 2 || most <= least*linksApart {
		return nil, checked / 2
	}
	return []Finding{{Target: slow, Place: result.FactOf(recs.Facts[slow], FactPlace),
		Saw: fmt.Sprintf("The link of %s has %s, that of %s %s.",
			slow, unit.Format(least, unit.BitPerSecond), fast, unit.Format(most, unit.BitPerSecond))}}, checked
}

func aboveStorage(recs *records) (found []Finding, checked int) {
	for _, r := range recs.runs {
		held := slices.DeleteFunc(AppliedLimits(recs.planned[r.Case], r, recs.Facts[r.Target]),
			func(h AppliedLimit) bool { return h.Resource == LinkRate })
		checked += len(held)
		for _, h := range held {
			if h.Value > h.Most*(1+clearMargin) && !slices.ContainsFunc(held, h.exceedsOther) {
				found = append(found, Finding{Case: r.Case, Target: r.Target,
					Metric: h.Metric, Runs: ids([]*result.Run{r}), Place: PlaceOf(r, h.Metric),
					Saw: fmt.Sprintf("%s, where the %s promises %s at most.",
						unit.Format(h.Value, h.Unit), limitOwners[h.Resource], unit.Format(h.Most, h.Unit))})
			}
		}
	}
	return found, checked
}

// limitOwners names what sets the maximum of a disk's resource.
var limitOwners = map[Resource]string{
	VolumeIOPS: "class", VolumeBandwidth: "class", MachineIOPS: "size of the VM", MachineBandwidth: "size of the VM",
}
