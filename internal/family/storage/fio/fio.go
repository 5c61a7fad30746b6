// Package fio runs fio as a family.Tool: from a workload it builds a job file (job.go), writes the file that the job
// reads or writes (layout.go), runs the job until its rate is steady if requested (precondition.go), runs it on the
// client of a pair (this file), reads the JSON that fio prints (output.go), makes a measurement of it (measurement.go),
// and checks it (gates.go).
//
// Jobs never run concurrently. Latencies are those of whole operations, from submission on.
package fio

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// program is the command on the client.
const program = "fio"

// grace is how much longer than planned fio may take.
const grace = 60 * time.Second

// maxOutput bounds fio's output, in bytes: each document has some 50 kB.
const maxOutput = 256 << 20

// errNoRoom is the cause of errors about volumes that are too small.
var errNoRoom = errors.New("the volume is too small")

// Tool is the fio tool. It remembers the files that it wrote on volumes that are kept from run to run.
type Tool struct {
	mu    sync.Mutex
	files map[fileKey]layout
}

// A fileKey identifies a file: where it is, and what determines its size.
type fileKey struct{ host, path, kept, size string }

// New returns the fio tool.
func New() *Tool { return &Tool{files: map[fileKey]layout{}} }

// Name returns the name for --tool.
func (*Tool) Name() string { return program }

func (t *Tool) known(p fileKey) (layout, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, is := t.files[p]
	return l, is
}

// given returns how many bytes files of given sizes take on a volume, without those of the file at p.
func (t *Tool) given(p fileKey) (bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for at, l := range t.files {
		if at.host == p.host && at.path == p.path && at.kept == p.kept && at.size != p.size {
			bytes += l.given
		}
	}
	return bytes
}

func (t *Tool) keep(p fileKey, l layout) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.files[p] = l
}

func (t *Tool) forget(kept string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.files, func(p fileKey, _ layout) bool { return p.kept == kept })
}

// Supports returns nil for jobs of storage that fio can run, else an error that wraps result.ErrNotSupported.
func (*Tool) Supports(w family.Workload) error {
	_, err := newJob(w)
	return err
}

// Program returns the name of fio.
func (*Tool) Program(family.Workload) string { return program }

// Run carries out w once. When it returns, no process of fio is running; the job's file stays on the volume.
func (t *Tool) Run(
	ctx context.Context, p host.Pair, w family.Workload, times family.Times,
) (result.Measurement, error) {
	j, err := newJob(w)
	if err != nil {
		return result.Measurement{}, err
	}
	if p.Volume.Path == "" {
		return result.Measurement{}, errors.New("the target gave no volume to measure")
	}
	r := &run{tool: t, pair: p, times: times, metrics: t.Metrics(w)}
	m, err := r.measure(ctx, j)
	m.Raw = r.files()
	if err != nil && p.Volume.Kept != "" {
		t.forget(p.Volume.Kept) // the file may be the cause
	}
	return m, err
}

// A run holds the state of one call of Run: the commands and their output.
type run struct {
	tool     *Tool
	pair     host.Pair
	times    family.Times
	metrics  []metric.Metric
	commands strings.Builder
	raw      []result.File
}

// measure writes the job's file, preconditions it, runs the job and returns its measurement.
func (r *run) measure(ctx context.Context, j job) (result.Measurement, error) {
	l, err := r.layOut(ctx, j)
	if err != nil {
		return result.Measurement{}, err
	}
	before, err := r.precondition(ctx, j, l)
	if err != nil {
		return result.Measurement{}, err
	}
	seed := drawSeed()
	text := j.measuring(l.workFile, r.times, l.size, seed, r.pair.Client.CPUs())
	p, err := r.fio(ctx, "fio", text, r.times.Total(), j.direct)
	if err != nil {
		return result.Measurement{}, err
	}
	o, err := p.whole()
	if err != nil {
		return result.Measurement{}, err
	}
	g := o.Groups()[0]
	m := &measurement{family.NewBuilder(r.metrics)}
	m.group(g)
	if l.probe > 0 {
		m.Add(metric.LayoutThroughput, 8*l.probe)
	}
	m.steps(p.documents)
	m.gates(j, r.times.Window, g, p.notes)
	m.Warnings = append(m.Warnings, l.warnings...)
	m.warnings(j, g)
	m.steadiness(j, l, before)
	m.RequireMetric(j.metric)
	m.Facts = append(m.Facts, append(g.Facts(), l.facts()...)...)
	m.Fact("latency-is", latencyIs(j.untimed))
	m.Fact("direct-io", yes(j.direct))
	m.Fact("seed", strconv.FormatUint(seed, 10))
	return m.Measurement, nil
}

func latencyIs(untimed bool) string {
	if untimed {
		return "not measured (gtod_reduce)"
	}
	return "of whole operations, from submission on"
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// drawSeed returns a random seed of 32 bits for the offsets of a run.
func drawSeed() uint64 {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return uint64(binary.LittleEndian.Uint32(b[:]))
}

// steps adds the rate and throughput of each second. fio's documents have counts so far, at times that are not exactly
// a second apart; between these the counts are interpolated linearly.
func (m *measurement) steps(documents []Output) {
	type point struct{ at, operations, bytes float64 }
	points := []point{{}}
	for _, d := range documents {
		if len(d.Jobs) != 1 {
			return
		}
		r, w := d.Jobs[0].Read, d.Jobs[0].Write
		p := point{math.Max(r.Runtime, w.Runtime) / 1e3, r.Total + w.Total, r.Bytes + w.Bytes}
		if last := points[len(points)-1]; p.at > last.at && p.operations >= last.operations && p.bytes >= last.bytes {
			points = append(points, p)
		}
	}
	// Each step needs a point of its own, so that none is pure interpolation.
	steps := int(points[len(points)-1].at + 0.02)
	if steps < 2 || len(points)-1 < steps {
		return
	}
	at := func(t float64, of func(point) float64) float64 {
		for i := 1; i < len(points); i++ {
			if a, b := points[i-1], points[i]; t <= b.at || i == len(points)-1 {
				return of(a) + (of(b)-of(a))*math.Min((t-a.at)/(b.at-a.at), 1)
			}
		}
		return 0
	}
	var rate, bits []float64
	for i := range steps {
		from, to := float64(i), float64(i+1)
		operations, bytes := func(p point) float64 { return p.operations }, func(p point) float64 { return p.bytes }
		rate = append(rate, at(to, operations)-at(from, operations))
		bits = append(bits, 8*(at(to, bytes)-at(from, bytes)))
	}
	m.Steps(metric.Rate, 1, rate)
	m.Steps(metric.Throughput, 1, bits)
}

// fio runs one job file and reads its output. Errors name the cause and the remedy.
func (r *run) fio(ctx context.Context, name, text string, takes time.Duration, direct bool) (printed, error) {
	h := r.pair.Client
	bounded, cancel := context.WithTimeout(ctx, takes+grace)
	defer cancel()
	args := arguments(0)
	if name == "fio" {
		args = arguments(takes)
	}
	stdout := family.Printout{Program: program, MaxBytes: maxOutput}
	stderr := stdout
	err := h.Run(bounded, host.Cmd{Args: args, Stdin: strings.NewReader(text), Stdout: &stdout, Stderr: &stderr})
	fmt.Fprintf(&r.commands, "%s: %s < %s.job\n", h.Name(), host.Cmd{Args: args}, name)
	p, parseErr := parse(stdout.Bytes())
	r.keep(name, text, p, stdout.Bytes(), stderr.Bytes())
	switch {
	case ctx.Err() != nil:
		return p, ctx.Err()
	case bounded.Err() != nil:
		return p, fmt.Errorf("fio on %s was not done %s after it should have been: %w", h.Name(), grace, bounded.Err())
	}
	f := failure{host: h.Name(), volume: r.pair.Volume, direct: direct,
		notes: p.notes, stderr: stderr.String(), cause: err}
	if o, wrong := p.whole(); wrong == nil {
		f.errno = o.Jobs[0].Error
	}
	switch {
	case err != nil || f.errno != 0:
		return p, f.explain()
	case parseErr != nil:
		return p, fmt.Errorf("fio on %s: %w", h.Name(), parseErr)
	}
	return p, nil
}

// keep saves the job file, the last document and the other output as raw files; earlier documents are in the series.
func (r *run) keep(name, text string, p printed, stdout, stderr []byte) {
	r.raw = append(r.raw, result.File{Name: name + ".job", Data: []byte(text)})
	out := p.last
	if out == nil {
		out = stdout
	}
	for _, f := range []result.File{{Name: name + ".json", Data: out}, {Name: name + ".notes", Data: []byte(p.notes)},
		{Name: name + ".stderr", Data: stderr}} {
		if len(bytes.TrimSpace(f.Data)) > 0 {
			r.raw = append(r.raw, result.File{Name: f.Name, Data: bytes.Clone(f.Data)})
		}
	}
}

func (r *run) files() []result.File {
	return append([]result.File{{Name: "commands.txt", Data: []byte(r.commands.String())}}, r.raw...)
}
