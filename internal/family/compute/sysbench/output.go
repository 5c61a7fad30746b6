package sysbench

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/compute/program"
)

// errOutput is wrapped by every error about the text that sysbench printed.
var errOutput = errors.New("not the report of sysbench")

var (
	version   = regexp.MustCompile(`^sysbench [^ ]+`)
	totalTime = regexp.MustCompile(`^total time: +([0-9.]+)s$`)
)

// parse reads the report of the test.
func (t test) parse(printed []byte, _ int) (program.Figures, error) {
	var f program.Figures
	for line := range strings.Lines(string(printed)) {
		line = strings.TrimSpace(line)
		f.Version += version.FindString(line)
		f.Seconds += number(totalTime, line)
		f.PerSecond += t.scale * number(t.result, line)
		if step := number(t.step, line); step > 0 {
			f.Steps = append(f.Steps, t.scale*step)
		}
	}
	if !(f.Seconds > 0 && f.Seconds < 1e6 && f.PerSecond > 0) {
		return program.Figures{}, fmt.Errorf("%w, which has a total time and a rate: %s", errOutput, family.Excerpt(printed))
	}
	return f, nil
}

// number returns the number in a line, or 0 if the line does not match.
func number(pattern *regexp.Regexp, line string) float64 {
	found := pattern.FindStringSubmatch(line)
	if found == nil {
		return 0
	}
	v, _ := strconv.ParseFloat(found[1], 64) // 0 if it is none
	return v
}
