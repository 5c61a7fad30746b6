package targets

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
)

// counts are the options that say how many of something there are. A target without one has none.
var counts = []string{"rules", "services", "endpoints", "policies", "pods"}

// A Ladder is targets that differ by how many of something they have, and by nothing else.
type Ladder struct {
	Option  string
	Targets []string  // labels, by ascending numbers
	Numbers []float64 // whole, and not all the same
}

// Ladders finds them among the targets of an experiment, in the order of their first targets. A target is in several
// of them if it has none of several things.
func Ladders(specs []Spec) []Ladder {
	var list []Ladder
	for i, first := range specs {
		for _, option := range counts {
			l := Ladder{Option: option}
			for k, s := range specs {
				n, ok := s.number(option)
				if !ok || !s.without(option).alike(first.without(option)) {
					continue
				}
				if k < i { // the ladder is that of an earlier target
					l = Ladder{}
					break
				}
				l.Targets, l.Numbers = append(l.Targets, s.Label()), append(l.Numbers, n)
			}
			if l.sort(); len(l.Numbers) > 1 && l.Numbers[0] < l.Numbers[len(l.Numbers)-1] {
				list = append(list, l)
			}
		}
	}
	return list
}

// number is how many of something a target has; not ok if the option says something else.
func (s Spec) number(option string) (float64, bool) {
	n, err := strconv.ParseUint(cmp.Or(s.Options[option], "0"), 10, 32)
	return float64(n), err == nil
}

// without is a target without an option and its label.
func (s Spec) without(option string) Spec {
	s.Options = maps.Clone(s.Options)
	delete(s.Options, option)
	delete(s.Options, "label")
	return s
}

func (s Spec) alike(o Spec) bool {
	return s.Kind == o.Kind && s.Name == o.Name && maps.Equal(s.Options, o.Options)
}

func (l *Ladder) sort() {
	order := make([]int, len(l.Numbers))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(l.Numbers[a], l.Numbers[b]) })
	sorted := Ladder{Option: l.Option}
	for _, i := range order {
		sorted.Targets, sorted.Numbers = append(sorted.Targets, l.Targets[i]), append(sorted.Numbers, l.Numbers[i])
	}
	*l = sorted
}
