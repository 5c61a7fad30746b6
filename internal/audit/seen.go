package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Seen has the numbers of the sources that an audit has examined, so that copies in the next source are found. The zero
// value is empty.
type Seen struct {
	outputs map[string]seenOutput // by case and values
	columns []column
}

// A seenOutput is the first output of a tool with its numbers.
type seenOutput struct{ target, place string }

// identicalOutputs compares the outputs of tools, pasted into a text or imported, each as a whole: with the others
// of the source, and with those of the sources before it.
func identicalOutputs(recs *records) (found []Finding, checked int) {
	for _, r := range recs.runs {
		if published(r) && r.Fact(FactTable) != TableOutput || !published(r) && recs.Experiment.Imported == "" {
			continue
		}
		numbers := significant(r)
		if len(numbers) < fewRepeats {
			continue
		}
		checked++
		key := strings.Join(append(numbers, recs.planned[r.Case].Workload), "\x00")
		first, seen := recs.Seen.outputs[key]
		switch {
		case !seen:
			recs.Seen.outputs[key] = seenOutput{recs.nameOf(r), recs.placeOrRun(r)}
		case first.target != recs.nameOf(r):
			place := first.place
			if line, same := strings.CutPrefix(place, recs.Source+":"); same {
				place = "line " + line
			}
			found = append(found, Finding{Case: r.Case, Target: r.Target, Runs: ids([]*result.Run{r}), Place: r.Fact(FactPlace),
				Saw: fmt.Sprintf("All %d numbers of %s are those of %s in %s.",
					len(numbers), recs.nameOf(r), first.target, place)})
		}
	}
	return found, checked
}

// significant returns the values of a run, sorted, if three measured ones have three digits. Fewer may be equal by
// chance.
func significant(r *result.Run) []string {
	var numbers []string
	long := 0
	for _, v := range r.Values {
		if v.Better != metric.Neutral && digits(v.Number) >= 3 {
			long++
		}
		numbers = append(numbers, fmt.Sprint(v.Metric, " ", v.Number, " ", v.Unit))
	}
	if long < fewRepeats {
		return nil
	}
	slices.Sort(numbers)
	return numbers
}

// nameOf returns the target of a run, or its source if the target is unknown.
func (recs *records) nameOf(r *result.Run) string {
	if r.Target == result.Unknown && recs.Source != "" {
		return recs.Source
	}
	return r.Target
}

// placeOrRun returns the place of a run in a text, or its id and directory.
func (recs *records) placeOrRun(r *result.Run) string {
	place := r.Fact(FactPlace)
	switch {
	case place != "":
		return place
	case recs.Source == "":
		return "run " + r.ID
	}
	return "run " + r.ID + " of " + recs.Source
}
