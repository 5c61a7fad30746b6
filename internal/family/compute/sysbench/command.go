package sysbench

import (
	"regexp"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/family/compute"
	"github.com/knotmeter/knotmeter/internal/family/compute/program"
)

// A test is how sysbench carries out a kind of workload.
type test struct {
	name     string
	settings [][2]string    // options that the result depends on, with their values
	result   *regexp.Regexp // of the report, per second
	step     *regexp.Regexp // the same, of a second
	scale    float64        // of both, to the base unit
}

// tests has the kinds that sysbench carries out, with its defaults: published figures have these. Only the total size
// of the memory test is another, since the test ends when it has written that much.
var tests = map[compute.Kind]test{
	compute.SysbenchCPU: {name: "cpu", scale: 1,
		settings: [][2]string{{"cpu-max-prime", "10000"}},
		result:   regexp.MustCompile(`^events per second: +([0-9.]+)$`),
		step:     regexp.MustCompile(`^\[ [0-9]+s \] thds: [0-9]+ eps: ([0-9.]+) `)},
	compute.SysbenchMemory: {name: "memory", scale: 1 << 20,
		settings: [][2]string{{"memory-block-size", "1K"}, {"memory-scope", "global"}, {"memory-oper", "write"},
			{"memory-access-mode", "seq"}, {"memory-total-size", "1000000T"}},
		result: regexp.MustCompile(`^[0-9.]+ MiB transferred \(([0-9.]+) MiB/sec\)$`),
		step:   regexp.MustCompile(`^\[ [0-9]+s \] ([0-9.]+) MiB/sec$`)},
}

// command returns the arguments of sysbench. It is pure.
func (t test) command(cpus, seconds int) []string {
	args := []string{t.name}
	for _, s := range t.settings {
		args = append(args, "--"+s[0]+"="+s[1])
	}
	return append(args, "--threads="+strconv.Itoa(cpus), "--time="+strconv.Itoa(seconds), "--report-interval=1", "run")
}

func (t test) method() program.Method {
	return program.Method{Program: name, Command: t.command, Parse: t.parse, Settings: t.settings}
}
