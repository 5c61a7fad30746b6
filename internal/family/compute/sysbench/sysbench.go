// Package sysbench runs the cpu and memory tests of sysbench as a family.Tool: a workload is a command line
// (command.go), and the result is in the report that sysbench prints (output.go).
//
// Events of sysbench cpu are its own searches for primes: they compare with figures of the same version and settings,
// and with nothing else. Its latencies have two decimals of a millisecond, which is coarser than the differences that
// matter; they are in the evidence alone.
package sysbench

import "github.com/knotmeter/knotmeter/internal/family/compute/program"

// name is the command on the host, and the name of the tool.
const name = "sysbench"

// New returns the sysbench tool.
func New() *program.Tool {
	return program.NewTool(name, "it has sysbench-cpu and sysbench-memory", tests, test.method)
}
