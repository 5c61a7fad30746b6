//go:build race

package compare

// simulated is how many experiments of each nature there are. The race detector makes each some ten
// times as slow, and has seen after a few what it can see.
const simulated = 6
