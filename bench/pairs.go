package main

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/stats"
)

// A pair has the results of two programs that ran back to back.
type pair[T any] struct{ ours, theirs T }

// interleave runs both programs n times in alternating order, and calls show after each pair.
func interleave[T any](n int, ours, theirs func() (T, error), show func(pair[T])) ([]pair[T], error) {
	var list []pair[T]
	for i := range n {
		var p pair[T]
		sides := []struct {
			run func() (T, error)
			to  *T
		}{{ours, &p.ours}, {theirs, &p.theirs}}
		if i%2 == 1 {
			slices.Reverse(sides)
		}
		for _, s := range sides {
			var err error
			if *s.to, err = s.run(); err != nil {
				return nil, err
			}
		}
		show(p)
		list = append(list, p)
	}
	return list, nil
}

// A ratio summarises one number over pairs.
type ratio struct {
	ours, theirs float64 // medians
	ofMedians    float64
	q1, q3       float64 // quartiles of the ratios within pairs
}

// ratioOf compares a number of both programs over pairs.
func ratioOf[T any](pairs []pair[T], number func(T) float64) ratio {
	var ours, theirs, within []float64
	for _, p := range pairs {
		x, y := number(p.ours), number(p.theirs)
		ours, theirs, within = append(ours, x), append(theirs, y), append(within, x/y)
	}
	x, y, w := stats.Median(ours), stats.Median(theirs), stats.Summarise(within)
	return ratio{ours: x, theirs: y, ofMedians: x / y, q1: w.Q1, q3: w.Q3}
}
