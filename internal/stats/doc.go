// Package stats has the estimates, intervals and tests that comparisons are made of: paired by the
// Wilcoxon signed-rank statistic, unpaired by Mann-Whitney, both with the Hodges-Lehmann estimate
// and its distribution-free interval, and what planning and multiplicity need.
//
// It stands before compare in the data flow, knows nothing of networks, imports nothing of ours and
// has no state. What a reader should know about a result comes with it as warnings, sentences in
// plain words; values that are not finite are left out and counted in one. Nothing here panics.
package stats
