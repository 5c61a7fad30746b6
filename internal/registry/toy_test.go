package registry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/parameter"
	"github.com/knotmeter/knotmeter/internal/result"
)

// This file is a whole family, small enough to be read at once: how fast a host computes checksums, with the programs
// that it has for that. docs/internals/adding-a-family.md walks through it; TestToyFamily runs, compares, reports it.

// toys returns the family that registry.go would list.
func toys() family.Family {
	crc := hash{Sum: "crc", Block: 1 << 20}
	return family.Family{
		Name: "toy", Paths: []string{"toy"}, Parse: parseHash,
		Parameters: family.ParametersOf(parameters), Tools: []family.Tool{coreutils{}},
		Kinds:  []family.Sample{{Name: "toy", Workload: crc}},
		Offers: []family.Sample{{Name: "checksums", Workload: crc}},
		Suites: []family.Suite{{
			Name: "toy", About: "two checksums of a MiB", Duration: 100 * time.Millisecond, Cases: slices.Concat(
				family.Cases(result.Primary, named, "crc"), family.Cases(result.Exploratory, named, "sha256")),
		}},
	}
}

func named(name string) (family.Workload, error) { return parseHash("toy", name, "") }

// A hash is a workload: it describes what is done, not how. Its values are comparable.
type hash struct {
	Sum   string // crc or sha256
	Block int    // bytes in each operation
}

// sums are the programs for each checksum.
var sums = map[string]string{"crc": "cksum", "sha256": "sha256sum"}

// parameters are those of both checksums.
var parameters = parameter.Schema[hash]{
	parameter.New(parameter.Parameter[hash]{Name: "block", Default: "1048576", Help: "bytes in each operation"},
		func(h *hash) *int { return &h.Block }, parameter.Size(1, 64<<20, strconv.Itoa)),
}

// parseHash reads crc or sha256:block=4KiB.
func parseHash(_, name, _ string) (family.Workload, error) {
	sum, _, _ := strings.Cut(name, ":")
	h := hash{Sum: sum}
	if sums[sum] == "" {
		return nil, fmt.Errorf("there is no checksum %q; there are crc and sha256", sum)
	}
	err := parameters.Parse(&h, name)
	parameters.Fill(&h)
	return h, err
}

// title returns the text that parseHash reads.
func (h hash) title() string { return parameters.Text(h.Sum, h) }

func (h hash) String() string { return "toy/" + h.title() }

// Traits describes the workload: it needs only a host, and verdicts are about its throughput.
func (h hash) Traits() family.Traits {
	return family.Traits{
		Path: "toy", Kind: h.title(), Metric: metric.Throughput,
		Limits: family.Limits{Run: time.Minute},
	}
}

// coreutils is the tool: the programs of GNU coreutils.
type coreutils struct{}

func (coreutils) Name() string { return "coreutils" }

func (coreutils) Supports(w family.Workload) error {
	if _, is := w.(hash); !is {
		return result.NotSupported(fmt.Sprintf("coreutils have no program for %s", w))
	}
	return nil
}

func (coreutils) Metrics(family.Workload) []metric.Metric {
	return metric.Of("", metric.Throughput, metric.Rate)
}

func (coreutils) Program(w family.Workload) string { return sums[w.(hash).Sum] }

// Run computes one checksum after another until the window is over.
func (t coreutils) Run(
	ctx context.Context, p host.Pair, w family.Workload, times family.Times,
) (result.Measurement, error) {
	if err := t.Supports(w); err != nil {
		return result.Measurement{}, err
	}
	h := w.(hash)
	program := host.Cmd{Args: []string{sums[h.Sum]}}
	m := result.Measurement{Raw: []result.File{{Name: "commands.txt", Data: []byte(program.String() + " < zeros\n")}}}
	var from time.Time
	done := 0
	for began := time.Now(); time.Since(began) < times.Total(); done++ {
		if from.IsZero() && time.Since(began) >= times.Warmup {
			from, done = time.Now(), 0
		}
		program.Stdin, program.Stdout = bytes.NewReader(make([]byte, h.Block)), io.Discard
		if err := p.Client.Run(ctx, program); err != nil {
			return m, fmt.Errorf("%s on %s: %w", program, p.Client.Name(), err)
		}
	}
	m.Window = time.Since(from).Seconds()
	for _, v := range []struct {
		name  string
		total float64
	}{{metric.Throughput, float64(8 * done * h.Block)}, {metric.Rate, float64(done)}} {
		of := metric.Named(v.name)
		m.Values = append(m.Values, result.Value{Metric: of.Name,
			Unit: of.Unit, Better: of.Better, Number: v.total / m.Window})
	}
	return m, nil
}
