//go:build !race

package compare

// simulated is how many experiments of each nature there are.
const simulated = 300
