package report

import (
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/unit"
)

// A metricColumn is a metric that has a column of its own, in tables with one row for each run.
type metricColumn struct {
	name string
	unit unit.Unit
}

// metricColumns are the metrics of the runs, in the order of their names.
func metricColumns(runs []run) []metricColumn {
	var columns []metricColumn
	seen := map[metricColumn]bool{}
	for _, r := range runs {
		for _, v := range r.Values {
			if c := (metricColumn{v.Metric, v.Unit}); !seen[c] {
				seen[c] = true
				columns = append(columns, c)
			}
		}
	}
	slices.SortFunc(columns, func(a, b metricColumn) int {
		return strings.Compare(a.name+"\x00"+string(a.unit), b.name+"\x00"+string(b.unit))
	})
	return columns
}
