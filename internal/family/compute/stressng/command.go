package stressng

import (
	"strconv"

	"github.com/knotmeter/knotmeter/internal/family/compute"
	"github.com/knotmeter/knotmeter/internal/family/compute/program"
)

// A stressor is how stress-ng carries out a kind of workload.
type stressor struct {
	name     string
	settings [][2]string // options that the result depends on, with their values
	// methods is how many methods it has in turn, an operation of each: a figure has steps of as many operations, since
	// some of them take almost all the time.
	methods float64
}

// stressors has the kinds that stress-ng carries out, with its defaults: published figures have these. Only the method
// of vm is not the default, which has 35 methods in turn: their operations take times that differ by a factor of fifty,
// so that a figure depends on how far a window gets.
var stressors = map[compute.Kind]stressor{
	compute.StressNGMatrix: {"matrix", [][2]string{{"matrix-method", "all"}}, 14},
	compute.StressNGVM:     {"vm", [][2]string{{"vm-method", "write64"}, {"vm-bytes", "256m"}}, 1},
}

// command returns the arguments of stress-ng. It is pure. The directory of temporary files, which stress-ng insists on
// even if it has none, is the one that users of the agent's image may write to.
func (s stressor) command(cpus, seconds int) []string {
	args := []string{"--" + s.name, strconv.Itoa(cpus)}
	for _, o := range s.settings {
		args = append(args, "--"+o[0], o[1])
	}
	return append(args, "--timeout", strconv.Itoa(seconds)+"s", "--metrics-brief", "--no-rand-seed", "--temp-path", "/tmp")
}

func (s stressor) method() program.Method {
	return program.Method{Program: name, Version: []string{"--version"}, Command: s.command, Parse: s.parse,
		Settings: s.settings}
}
