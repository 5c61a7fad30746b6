package openssl

import (
	"strconv"

	"github.com/knotmeter/knotmeter/internal/family/compute"
	"github.com/knotmeter/knotmeter/internal/family/compute/program"
)

// message is the number of bytes that a cipher or hash takes at a time: those of this program's own loops, and the
// largest number that openssl speed measures by default.
const message = 16 << 10

// An algorithm is how openssl speed carries out a kind of workload.
type algorithm struct {
	arguments []string
	prefix    string // of the line with the result
	field     int    // of the result in that line, after the prefix
	parts     int    // measurements of the command, each as long as the window; 0 means 1
	block     int    // bytes of an operation; 0: it has no size
}

// algorithms has the kinds that openssl speed can carry out. One command measures both signing and verifying.
var algorithms = map[compute.Kind]algorithm{
	compute.AES256GCM:       {arguments: []string{"-evp", "aes-256-gcm"}, prefix: "+F:", field: 2, block: message},
	compute.SHA256:          {arguments: []string{"-evp", "sha256"}, prefix: "+F:", field: 2, block: message},
	compute.ECDSAP256Sign:   {arguments: []string{"ecdsap256"}, prefix: "+F4:", field: 2, parts: 2},
	compute.ECDSAP256Verify: {arguments: []string{"ecdsap256"}, prefix: "+F4:", field: 3, parts: 2},
}

// command returns the arguments of openssl. It is pure. Without -elapsed, openssl speed would divide by CPU time, in
// which neither a quota nor a hypervisor that takes time away shows.
func (a algorithm) command(cpus, seconds int) []string {
	args := []string{"speed", "-mr", "-elapsed", "-seconds", strconv.Itoa(seconds)}
	if a.block > 0 {
		args = append(args, "-bytes", strconv.Itoa(a.block))
	}
	if cpus > 1 {
		args = append(args, "-multi", strconv.Itoa(cpus))
	}
	return append(args, a.arguments...)
}

func (a algorithm) method() program.Method {
	m := program.Method{Program: name, Version: []string{"version"}, Command: a.command, Parts: a.parts, Parse: a.parse}
	if a.block > 0 {
		m.Settings = [][2]string{{"block", strconv.Itoa(a.block) + " B"}}
	}
	return m
}
