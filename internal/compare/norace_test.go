//go:build !race

package compare

// simulated is the number of experiments of each kind.
const simulated = 300
