//go:build race

package compare

// simulated is the number of experiments of each kind. The race detector makes each about ten times slower, and finds
// races in the first few.
const simulated = 6
