package compare

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/result"
)

// countOptions lists the options that give a number of objects. Without the option the number is 0.
var countOptions = []string{"rules", "services", "endpoints", "policies", "pods"}

// A ladder is a set of targets that differ only in the number of one kind of objects.
type ladder struct {
	Option  string
	Targets []string  // labels, by ascending numbers
	Numbers []float64 // whole, and not all the same
}

// ladders returns the ladders among the targets of an experiment, in the order of their first targets. A target without
// any objects may be in several ladders.
func ladders(specs []result.Spec) []ladder {
	var list []ladder
	for i, first := range specs {
		for _, option := range countOptions {
			l := ladder{Option: option}
			for k, s := range specs {
				n, ok := count(s, option)
				if !ok || !sameTarget(without(s, option), without(first, option)) {
					continue
				}
				if k < i { // an earlier target has found this ladder
					l = ladder{}
					break
				}
				l.Targets, l.Numbers = append(l.Targets, s.Label()), append(l.Numbers, n)
			}
			if l.sortByNumber(); len(l.Numbers) > 1 && l.Numbers[0] < l.Numbers[len(l.Numbers)-1] {
				list = append(list, l)
			}
		}
	}
	return list
}

// count returns the value of an option as a number, 0 without it; ok is false if the value is no number.
func count(s result.Spec, option string) (number float64, ok bool) {
	n, err := strconv.ParseUint(cmp.Or(s.Options[option], "0"), 10, 32)
	return float64(n), err == nil
}

// without returns a copy of the target without an option and the label.
func without(s result.Spec, option string) result.Spec {
	s.Options = maps.Clone(s.Options)
	delete(s.Options, option)
	delete(s.Options, "label")
	return s
}

// sameTarget reports whether two targets have the same kind, name and options.
func sameTarget(s, o result.Spec) bool {
	return s.Kind == o.Kind && s.Name == o.Name && maps.Equal(s.Options, o.Options)
}

// sortByNumber sorts the targets by ascending numbers.
func (l *ladder) sortByNumber() {
	order := make([]int, len(l.Numbers))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(l.Numbers[a], l.Numbers[b]) })
	sorted := ladder{Option: l.Option}
	for _, i := range order {
		sorted.Targets, sorted.Numbers = append(sorted.Targets, l.Targets[i]), append(sorted.Numbers, l.Numbers[i])
	}
	*l = sorted
}
