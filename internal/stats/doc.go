// Package stats has the estimates, intervals and tests that comparisons are made of: paired by the
// Wilcoxon signed-rank statistic, at one look or at several, unpaired by Mann-Whitney, all with the
// Hodges-Lehmann estimate and its distribution-free interval, and what planning and multiplicity need.
//
// It stands before compare in the data flow, knows nothing of networks, imports nothing of ours and has no state but
// what a [GroupSequential] remembers of its own simulation. What a reader should know about a result comes with it as
// warnings, sentences in plain words; values that are not finite are left out and counted in one. Nothing here panics.
package stats
