package stressng

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/compute/program"
)

// errOutput is wrapped by every error about the text that stress-ng printed.
var errOutput = errors.New("not the table of stress-ng --metrics-brief")

// row matches a stressor's row in the table: its name, operations, seconds, seconds of CPU time in user mode and in the
// kernel, and operations per second of real time and of CPU time.
var row = regexp.MustCompile(`^stress-ng: [a-z]+: +\[[0-9]+\] ([a-z-]+) +([0-9]+) +([0-9.]+) +[0-9.]+ +[0-9.]+ +` +
	`([0-9.]+) +[0-9.]+ *$`)

// parse returns the operations per second of real time of all instances together.
func (s stressor) parse(printed []byte, _ int) (program.Figures, error) {
	for line := range strings.Lines(string(printed)) {
		found := row.FindStringSubmatch(strings.TrimSpace(line))
		if found == nil || found[1] != s.name {
			continue
		}
		var numbers [3]float64
		for i := range numbers {
			var err error
			if numbers[i], err = strconv.ParseFloat(found[2+i], 64); err != nil || !(numbers[i] > 0 && numbers[i] < 1e18) {
				return program.Figures{}, fmt.Errorf("%w: %q", errOutput, line)
			}
		}
		operations, seconds, perSecond := numbers[0], numbers[1], numbers[2]
		return program.Figures{Seconds: seconds, PerSecond: perSecond, Step: s.methods / operations}, nil
	}
	return program.Figures{}, fmt.Errorf("%w with a row of %s: %s", errOutput, s.name, family.Excerpt(printed))
}
