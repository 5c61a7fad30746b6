package runner

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A CaseBlock is one case measured once on every target, back to back.
type CaseBlock struct {
	Case    result.Case
	Block   int      // from 1
	Targets []string // in the order of the first attempt
}

// Schedule is the order of block, from 1: the cases in random order, and for each the targets in
// random order. It depends on the experiment and the block alone: what is not measured is left out
// without changing the order of the rest.
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

// Order is the random order of targets in which an attempt, from 1, at a block measures a case. Targets that are
// measured in turn have the order of their [Visits], for all cases and attempts.
func Order(e result.Experiment, c result.Case, block, attempt int) []string {
	names := Visits(e, block)
	if !e.InTurn() {
		names = shuffled(e, fmt.Sprintf("targets/%d/%s/%d", block, c.Name, attempt))
	}
	return slices.DeleteFunc(names, func(name string) bool { return !e.Measures(c, name) })
}

// Visits is the random order in which block, from 1, visits targets that are measured in turn.
func Visits(e result.Experiment, block int) []string {
	return shuffled(e, fmt.Sprintf("visits/%d", block))
}

// shuffled are the names of the targets in an order that is drawn for a purpose.
func shuffled(e result.Experiment, purpose string) []string {
	var names []string
	for _, i := range draw(e.Seed, purpose).Perm(len(e.Targets)) {
		names = append(names, e.Targets[i].Name)
	}
	return names
}

// Rotation is which nodes the runs of a block, from 1, are on where a target has a choice: the same for all attempts at
// it, and the next in the next block, so that nodes take part in balance whenever a case stops.
func Rotation(block int) int { return block - 1 }

// Seed is what a run draws its random numbers from: another one for each run, also of the same block, so that what they
// decide is not alike on two targets.
func Seed(e result.Experiment, r result.Run) uint64 {
	return draw(e.Seed, fmt.Sprintf("run/%d/%s/%s/%d", r.Block, r.Case, r.Target, r.Attempt)).Uint64()
}

// draw is a stream of random numbers of its own for each purpose, so that adding a case, a block or
// an attempt leaves every other order as it is.
func draw(seed uint64, purpose string) *rand.Rand {
	sum := sha256.Sum256([]byte(purpose))
	return rand.New(rand.NewPCG(seed, binary.LittleEndian.Uint64(sum[:])))
}
