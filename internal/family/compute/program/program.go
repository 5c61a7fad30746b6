// Package program carries out workloads of compute with the benchmark programs of other projects: it runs a warm-up and
// a measurement on a host, each for whole seconds, and makes a result of what the program printed. A [Tool] has a
// [Method] for each kind of workload that its program carries out.
//
// None of these programs leaves out a warm-up of its own, so the warm-up is the same command, run before, whose output
// is not used.
package program

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/compute"
	"github.com/knotmeter/knotmeter/internal/load/computeload"
	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A Method is how a program carries out a workload. Its functions are pure.
type Method struct {
	Program string   // first word of the commands
	Version []string // arguments with which the program prints its version; nil: the measurement's output has it
	// Command returns the arguments of a measurement, which has so many parts, each of these seconds.
	Command func(cpus, seconds int) []string
	Parts   int // 0 means 1
	// Parse reads what a measurement of these seconds printed, first on standard output and then on standard error, which
	// programs use one for the other.
	Parse func(printed []byte, seconds int) (Figures, error)
	// Settings are the options that the figures depend on, each with its value. They become facts with the program's name
	// before that of the option.
	Settings [][2]string
}

// Figures is what a program reports of a measurement.
type Figures struct {
	Version   string    // empty: it does not report that
	Seconds   float64   // how long it took
	PerSecond float64   // the workload's metric: operations or bytes per second of all CPUs together
	Steps     []float64 // the same of each second
	// Step is the resolution of PerSecond as a fraction, such as a tick of the program's clock; 0: not known.
	Step float64
}

// checkCPUs returns an error that wraps result.ErrNotSupported if w uses CPUs that only a tool can use that chooses
// them.
func checkCPUs(name string, w compute.Workload) error {
	if w.CPUs == compute.OneCore {
		return result.NotSupported(fmt.Sprintf("%s takes a number of CPUs and does not choose them by core: give cpus=2, or "+
			"cpus=all", name))
	}
	return nil
}

// metricsOf returns the metrics of a run of w.
func metricsOf(w family.Workload) []metric.Metric {
	return metric.Of("", w.Traits().Metric, compute.Throttled)
}

// carryOut carries out w once. It returns the evidence with an error, too.
func (r *run) carryOut(
	ctx context.Context, w compute.Workload, times family.Times, by Method,
) (result.Measurement, error) {
	b := family.NewBuilder(metricsOf(w))
	err := r.measure(ctx, b, w, times, by)
	b.Raw = r.evidence()
	return b.Measurement, err
}

// measure runs the commands of a method and builds the measurement.
func (r *run) measure(
	ctx context.Context, b *family.Builder, w compute.Workload, times family.Times, by Method,
) error {
	cpus, err := r.countCPUs(ctx, w)
	if err != nil {
		return err
	}
	var version []byte
	if by.Version != nil {
		if version, err = r.output(ctx, "version", 0, by.Version); err != nil {
			return err
		}
	}
	warmup, window := wholeSeconds(times)
	takes := func(seconds int) time.Duration { return time.Duration(seconds*max(by.Parts, 1)) * time.Second }
	if warmup > 0 {
		if _, err := r.output(ctx, "warmup", takes(warmup), by.Command(cpus, warmup)); err != nil {
			return err
		}
	}
	before, err := r.readCPUs(ctx)
	if err != nil {
		return err
	}
	out, err := r.output(ctx, by.Program, takes(window), by.Command(cpus, window))
	if err != nil {
		return err
	}
	after, err := r.readCPUs(ctx)
	if err != nil {
		return err
	}
	f, err := by.Parse(out, window)
	if err != nil {
		return fmt.Errorf("%s on %s: %w", by.Program, r.host.Name(), err)
	}
	b.Window = f.Seconds
	if b.Window < fullWindow*float64(window) {
		b.Refuse(result.ShortWindow, "%s measured for %.3g s and not for %d s", by.Program, b.Window, window)
	}
	of := w.Traits().Metric
	b.Add(of, f.PerSecond)
	for i := range b.Values {
		b.Values[i].Step = f.Step
	}
	b.Steps(of, 1, f.Steps)
	disturbance(before, after).Judge(b, r.cpuLimit)
	b.Fact("tool.version", family.OrUnknown(string(version)+f.Version))
	b.Fact("cpus", strconv.Itoa(cpus))
	b.Fact("cpu.frequency.before", frequencies(before))
	b.Fact("cpu.frequency.after", frequencies(after))
	b.Facts = append(b.Facts, by.timeFacts(times)...)
	for _, s := range by.Settings {
		b.Fact(by.Program+"."+s[0], s[1])
	}
	return nil
}

// countCPUs returns how many CPUs a run of w uses. The error wraps result.ErrNotSupported if the host has fewer:
// programs would not notice, and share CPUs among their threads.
func (r *run) countCPUs(ctx context.Context, w compute.Workload) (int, error) {
	found, err := r.readCPUs(ctx)
	if err != nil {
		return 0, err
	}
	all := len(found.CPUs)
	if w.CPUs == compute.AllCPUs {
		return all, nil
	}
	if n := w.CPUs.Number(); n > all {
		return 0, result.NotSupported(fmt.Sprintf("it takes %d CPUs, and the agent may use %d", n, all))
	}
	return w.CPUs.Number(), nil
}

// disturbance returns what happened to the CPUs between two readings. The kernel places a program's threads, so it is
// not known which CPUs were idle for lack of work; time is stolen from busy ones.
func disturbance(before, after computeload.Reading) compute.Disturbance {
	d := compute.Disturbance{Throttled: after.Throttled - before.Throttled}
	if times := after.Since(before); times.Busy() > 0 {
		d.Stolen = times[machine.Steal] / times.Busy()
	}
	return d
}

// frequencies returns the range of the CPUs' frequencies.
func frequencies(s computeload.Reading) string {
	var known []float64
	for _, cpu := range s.CPUs {
		if cpu.Frequency > 0 {
			known = append(known, cpu.Frequency/1e6)
		}
	}
	if len(known) == 0 {
		return result.Unknown
	}
	return fmt.Sprintf("%.0f to %.0f MHz", slices.Min(known), slices.Max(known))
}

// timeFacts returns facts about how long the program ran.
func (m Method) timeFacts(asked family.Times) []result.Fact {
	warmup, window := wholeSeconds(asked)
	facts := []result.Fact{{Name: "tool.window", Value: fmt.Sprintf("%ds", window)},
		{Name: "tool.warmup", Value: fmt.Sprintf("%ds, by the same command before", warmup)}}
	if asked.Window != time.Duration(window)*time.Second || asked.Warmup != time.Duration(warmup)*time.Second {
		text := fmt.Sprintf("window of %s and warm-up of %s, to whole seconds as %s wants them", asked.Window, asked.Warmup,
			m.Program)
		facts = append(facts, result.Fact{Name: "tool.rounded", Value: text})
	}
	return facts
}

// fullWindow is the smallest valid share of the window.
const fullWindow = 0.95

// wholeSeconds returns the warm-up and the window in whole seconds. It rounds up: a shorter window than requested would
// be a different experiment. The window has at least one second.
func wholeSeconds(t family.Times) (warmup, window int) {
	up := func(d time.Duration) int { return int((max(d, 0) + time.Second - 1) / time.Second) }
	return up(t.Warmup), max(up(t.Window), 1)
}
