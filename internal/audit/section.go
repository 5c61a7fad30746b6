package audit

import "github.com/knotmeter/knotmeter/internal/result"

// sections groups runs by the section of their text, in the order in which the sections first appear. Measured runs are
// of one section.
func sections(runs []*result.Run) (groups [][]*result.Run) {
	at := map[string]int{}
	for _, r := range runs {
		section := r.Fact(FactSection)
		i, known := at[section]
		if !known {
			i = len(groups)
			at[section] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

// inSection returns the runs of a section. Without any it returns all runs if they are of one section: a text may have
// what it compares with, such as node-node, in a section of its own.
func inSection(runs []*result.Run, section string) []*result.Run {
	groups := sections(runs)
	for _, group := range groups {
		if group[0].Fact(FactSection) == section {
			return group
		}
	}
	if len(groups) == 1 {
		return runs
	}
	return nil
}
