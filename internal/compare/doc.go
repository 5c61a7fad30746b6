// Package compare turns the runs of an experiment into verdicts: for each case, metric and target,
// how the target differs from the baseline, how sure that is, and what else differs between them.
//
// It stands between stats, which knows the arithmetic and nothing of networks, and report, which
// renders a [Comparison] and does no arithmetic of its own: every number and every sentence that a
// reader sees is made here. It reads nothing but the values it is given.
package compare
