package openssl

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/compute/program"
)

// errOutput is wrapped by every error about the text that openssl printed.
var errOutput = errors.New("not the output of openssl speed -mr")

// tick is the resolution of openssl's clock in seconds: it reads the time from times(2).
const tick = 0.01

// parse returns the result of the algorithm, bytes or operations per second. With -multi it is the sum of all
// processes; the result of each precedes it, in a line that begins with another word.
func (a algorithm) parse(printed []byte, seconds int) (program.Figures, error) {
	f := program.Figures{Seconds: float64(seconds), Step: tick / float64(seconds)}
	for line := range strings.Lines(string(printed)) {
		rest, is := strings.CutPrefix(strings.TrimSpace(line), a.prefix)
		fields := strings.Split(rest, ":")
		if !is || len(fields) <= a.field {
			continue
		}
		var err error
		if f.PerSecond, err = strconv.ParseFloat(fields[a.field], 64); err != nil {
			return f, fmt.Errorf("%w: %w", errOutput, err)
		}
	}
	if !(f.PerSecond > 0) {
		of := a.arguments[len(a.arguments)-1]
		return f, fmt.Errorf("%w with a result of %s: %s", errOutput, of, family.Excerpt(printed))
	}
	return f, nil
}
