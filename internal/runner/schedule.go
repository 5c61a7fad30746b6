package runner

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A CaseBlock is one case of a block, with the targets that measure it.
type CaseBlock struct {
	Case    result.Case
	Block   int      // from 1
	Targets []string // in the order of the first attempt
}

// Schedule returns the order of a block, counted from 1: the cases in random order, and for each its targets in random
// order. It depends on the experiment and the block alone; leaving out a case or target does not change the order of
// the rest.
func Schedule(e result.Experiment, block int) []CaseBlock {
	var blocks []CaseBlock
	for _, i := range draw(e.Seed, fmt.Sprintf("cases/%d", block)).Perm(len(e.Cases)) {
		c := e.Cases[i]
		if targets := Order(e, c, block, 1); len(targets) > 0 {
			blocks = append(blocks, CaseBlock{Case: c, Block: block, Targets: targets})
		}
	}
	return blocks
}

// Order returns the random order of targets for an attempt, counted from 1, at a case in a block. Targets that are
// measured in turn have the order of their [Visits], for all cases and attempts.
func Order(e result.Experiment, c result.Case, block, attempt int) []string {
	names := Visits(e, block)
	if !e.InTurn() {
		names = shuffled(e, fmt.Sprintf("targets/%d/%s/%d", block, c.Name, attempt))
	}
	return slices.DeleteFunc(names, func(name string) bool { return !e.Measures(c, name) })
}

// Visits returns the random order in which a block, counted from 1, visits targets that are measured in turn.
func Visits(e result.Experiment, block int) []string {
	return shuffled(e, fmt.Sprintf("visits/%d", block))
}

// shuffled returns the names of the targets in the random order drawn for a purpose.
func shuffled(e result.Experiment, purpose string) []string {
	var names []string
	for _, i := range draw(e.Seed, purpose).Perm(len(e.Targets)) {
		names = append(names, e.Targets[i].Name)
	}
	return names
}

// Rotation returns the index of the pair of nodes that a block, counted from 1, uses on targets with several: the same
// for all attempts, the next for the next block, so that all pairs are used equally often whenever a case ends.
func Rotation(block int) int { return block - 1 }

// Seed returns the seed of a run's random numbers. It differs between all runs, so that two targets do not get the same
// random decisions.
func Seed(e result.Experiment, r result.Run) uint64 {
	return draw(e.Seed, fmt.Sprintf("run/%d/%s/%s/%d", r.Block, r.Case, r.Target, r.Attempt)).Uint64()
}

// draw returns a separate stream of random numbers for each purpose, so that adding a case, a block or an attempt does
// not change any other order.
func draw(seed uint64, purpose string) *rand.Rand {
	sum := sha256.Sum256([]byte(purpose))
	return rand.New(rand.NewPCG(seed, binary.LittleEndian.Uint64(sum[:])))
}
