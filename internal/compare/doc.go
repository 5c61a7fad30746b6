// Package compare turns the runs of an experiment into verdicts: for each case, metric and target, how the target
// differs from the baseline, with which confidence, and what else differs between the two.
//
// It stands between stats, which knows the arithmetic and nothing of networks, and report, which renders a [Comparison]
// without any arithmetic: every number and every sentence of a report is made here. It reads only the values that it is
// given.
package compare
