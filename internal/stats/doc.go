// Package stats computes the estimates, intervals and tests of comparisons: paired by the Wilcoxon signed-rank
// statistic, at one look or at several, and unpaired by Mann-Whitney, both with the Hodges-Lehmann estimate and its
// distribution-free interval. It also has functions for planning and for multiple comparisons.
//
// It knows nothing of networks, imports no other package of the module, and keeps no state except the simulations that
// a [GroupSequential] caches. Caveats about an estimate are returned with it, each as a [Remark]; values
// that are not finite are left out and counted in one. No function panics.
package stats
