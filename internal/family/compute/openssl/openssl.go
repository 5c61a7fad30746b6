// Package openssl runs openssl speed as a family.Tool: a workload is a command line (command.go), and the result is a
// line of what openssl speed prints with -mr (output.go).
//
// It measures the algorithms of this program's own loops, in messages of the same size, but as OpenSSL implements them:
// a difference between the two tools is one of implementations, not of machines.
package openssl

import "github.com/knotmeter/knotmeter/internal/family/compute/program"

// name is the command on the host, and the name of the tool.
const name = "openssl"

// New returns the openssl tool.
func New() *program.Tool {
	return program.NewTool(name, "it measures ciphers, hashes and signatures", algorithms, algorithm.method)
}
