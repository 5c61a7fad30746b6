package report

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// unitPrefix returns the prefixed unit in which a value is shown, such as Gbit/s, and its factor, such as 1e9.
func unitPrefix(v float64, u unit.Unit) (name string, scale float64) {
	_, name, _ = strings.Cut(unit.Format(v, u), " ")
	scale, _, err := unit.Parse("1 " + name)
	switch {
	case err != nil || scale == 0:
		return string(u), 1
	case u == unit.BytePerSecond:
		return name, scale / 8 // B/s is read as bit/s
	}
	return name, scale
}

// onAxis returns a scale with ticks that are round in the unit of their labels.
func onAxis(s chart.Scale, u unit.Unit) chart.Scale {
	_, s.Per = unitPrefix(s.Hi, u)
	return s
}

// axisLabels returns a function that labels the ticks of an axis with one common prefix and as many decimals as are
// needed to distinguish them.
func axisLabels(u unit.Unit) func([]float64) []string {
	return func(ticks []float64) []string {
		labels := make([]string, len(ticks))
		if len(ticks) == 0 {
			return labels
		}
		name, scale := unitPrefix(slices.Max(ticks), u)
		for decimals := 0; decimals <= 4; decimals++ {
			for i, t := range ticks {
				labels[i] = strings.TrimSpace(strconv.FormatFloat(t/scale, 'f', decimals, 64) + " " + name)
			}
			if labelsAccurate(labels, ticks, scale) {
				break
			}
		}
		return labels
	}
}

// labelsAccurate reports whether each label, read back, equals its tick within a fiftieth of the distance between
// ticks.
func labelsAccurate(labels []string, ticks []float64, scale float64) bool {
	for i, l := range labels {
		near := math.Abs(ticks[i])
		if i > 0 && (near == 0 || ticks[i]-ticks[i-1] < near) {
			near = ticks[i] - ticks[i-1]
		}
		number, _, _ := strings.Cut(l, " ")
		if v, err := strconv.ParseFloat(number, 64); err != nil || math.Abs(v*scale-ticks[i]) > near/50 {
			return false
		}
	}
	return true
}

// latencyLabels labels the ticks of a logarithmic axis, in seconds, each with its own prefix.
func latencyLabels(ticks []float64) []string {
	labels := make([]string, len(ticks))
	for i, t := range ticks {
		number, name, _ := strings.Cut(unit.Format(t, unit.Second), " ")
		if strings.Contains(number, ".") {
			number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
		}
		labels[i] = number + " " + name
	}
	return labels
}
