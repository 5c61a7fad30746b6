// Package compare turns the runs of an experiment into verdicts: for each case, metric and target, how the target
// differs from the baseline, with which confidence, and what else differs between the two.
//
// It stands between package stats, which knows the arithmetic and nothing of networks, and package report, which
// renders a [Comparison] without statistics of its own. A warning is a code with arguments, which report writes in
// words; verdicts and headlines are sentences already. The package reads only the values that it is given.
package compare
