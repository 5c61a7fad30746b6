// Package stressng runs the matrix and vm stressors of stress-ng as a family.Tool: a workload is a command line
// (command.go), and the result is a line of the table that stress-ng prints (output.go).
//
// Its operations are "bogo ops", without a unit: they compare with figures of the same version and method, and with
// nothing else.
package stressng

import "github.com/knotmeter/knotmeter/internal/family/compute/program"

// name is the command on the host, and the name of the tool.
const name = "stress-ng"

// New returns the stress-ng tool.
func New() *program.Tool {
	return program.NewTool(name, "it has stress-ng-matrix and stress-ng-vm", stressors, stressor.method)
}
