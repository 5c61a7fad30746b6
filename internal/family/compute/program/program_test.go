package program

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/compute"
	"github.com/knotmeter/knotmeter/internal/family/familytest"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/computeload"
	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A fakeHost is a host in memory that runs a function instead of commands.
type fakeHost struct {
	run func(ctx context.Context, c host.Cmd) error
	ran []string
}

func (*fakeHost) Name() string     { return "node1" }
func (*fakeHost) Addr() netip.Addr { return netip.Addr{} }
func (*fakeHost) CPUs() []int      { return nil }
func (f *fakeHost) Run(ctx context.Context, c host.Cmd) error {
	f.ran = append(f.ran, c.String())
	return f.run(ctx, c)
}

func prints(stdout string, err error) func(context.Context, host.Cmd) error {
	return func(_ context.Context, c host.Cmd) error {
		fmt.Fprint(c.Stdout, stdout)
		return err
	}
}

// onHost returns a run on a host with two CPUs, in whose readings nothing happens but what is given.
func onHost(h host.Host, readings ...computeload.Reading) *run {
	return &run{program: "meter", host: h, readCPUs: func(context.Context) (computeload.Reading, error) {
		if len(readings) == 0 {
			return computeload.Reading{CPUs: make([]computeload.CPUState, 2)}, nil
		}
		r := readings[0]
		readings = readings[1:]
		return r, nil
	}}
}

var errParse = errors.New("not a number")

// meter is a program that prints a number.
func meter() Method {
	return Method{
		Program: "meter", Version: []string{"-v"},
		Command: func(cpus, seconds int) []string { return []string{strconv.Itoa(cpus), strconv.Itoa(seconds)} },
		Parse: func(stdout []byte, seconds int) (Figures, error) {
			v, err := strconv.ParseFloat(string(stdout), 64)
			if err != nil {
				return Figures{}, errParse
			}
			return Figures{PerSecond: v, Seconds: float64(seconds), Steps: []float64{v}, Step: 0.01}, nil
		},
		Settings: [][2]string{{"size", "3"}},
	}
}

func workload(t *testing.T, text string) compute.Workload {
	t.Helper()
	w, err := compute.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestRun(t *testing.T) {
	h := &fakeHost{run: prints("7", nil)}
	w := workload(t, "sysbench-cpu")
	times := family.Times{Warmup: 50 * time.Millisecond, Window: 1500 * time.Millisecond}
	m, err := onHost(h).carryOut(t.Context(), w, times, meter())
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range append(familytest.Check(w, m), familytest.Unlisted(metricsOf(w), m)...) {
		t.Error(problem)
	}
	if got, want := strings.Join(h.ran, ", "), "meter -v, meter 1 1, meter 1 2"; got != want {
		t.Errorf("%s ran, want %s", got, want)
	}
	if v, _ := (result.Run{Values: m.Values}).Value("rate"); v.Number != 7 || v.Step != 0.01 || m.Window != 2 {
		t.Errorf("%+v in %g s", v, m.Window)
	}
	for name, want := range map[string]string{
		"tool.version": "7", "tool.window": "2s", "tool.warmup": "1s, by the same command before", "meter.size": "3",
		"tool.rounded": "window of 1.5s and warm-up of 50ms, to whole seconds as meter wants them", "cpus": "1",
	} {
		if got := result.FactOf(m.Facts, name); got != want {
			t.Errorf("fact %s is %q, want %q", name, got, want)
		}
	}
	h.ran = nil
	m, err = onHost(h).carryOut(t.Context(), w, family.Times{Window: time.Second}, meter())
	if err != nil || len(h.ran) != 2 || result.FactOf(m.Facts, "tool.rounded") != "" {
		t.Errorf("without a warm-up and rounding: %v ran, facts %v, %v", h.ran, m.Facts, err)
	}
}

// TestShortWindow checks that a run does not count if the program ended early.
func TestShortWindow(t *testing.T) {
	by := meter()
	by.Parse = func([]byte, int) (Figures, error) { return Figures{PerSecond: 1, Seconds: 0.5}, nil }
	h := &fakeHost{run: prints("", nil)}
	m, err := onHost(h).carryOut(t.Context(), workload(t, "sysbench-cpu"), family.Times{}, by)
	if err != nil || len(m.Invalid) != 1 || m.Invalid[0].Code != result.ShortWindow {
		t.Errorf("%+v, %v", m.Invalid, err)
	}
}

// TestDisturbed checks that throttling and stolen time during the measurement make a run invalid or add a warning, and
// that what was before it does not count.
func TestDisturbed(t *testing.T) {
	at := func(user, steal, idle float64, throttled int64) computeload.Reading {
		return computeload.Reading{Throttled: throttled, CPUs: []computeload.CPUState{
			{Number: 4, Frequency: 2.5e9, Times: machine.CPUTimes{machine.User: user, machine.Steal: steal}},
			{Number: 5, Frequency: 3e9, Times: machine.CPUTimes{machine.Idle: idle}},
		}}
	}
	before, started := at(10, 1, 10, 3), at(20, 5, 20, 7)
	for name, test := range map[string]struct {
		after           computeload.Reading
		cpuLimit        string
		invalid, warned result.Code
	}{
		"undisturbed":                    {at(21, 5.02, 21, 7), "", "", ""},
		"throttled":                      {at(21, 5, 21, 8), "", result.Throttled, ""},
		"throttled by the user's limit":  {at(21, 5, 21, 8), "500m", "", result.Throttled},
		"a tenth of a CPU's time stolen": {at(20.88, 5.12, 21, 7), "", result.CPUStolen, ""},
		"a little stolen":                {at(20.95, 5.05, 21, 7), "", "", result.CPUStolen},
	} {
		r := onHost(&fakeHost{run: prints("7", nil)}, before, started, test.after)
		r.cpuLimit = test.cpuLimit
		m, err := r.carryOut(t.Context(), workload(t, "sysbench-cpu"), family.Times{Window: time.Second}, meter())
		if err != nil {
			t.Fatal(err)
		}
		code := func(list []result.Warning) (codes result.Code) {
			for _, w := range list {
				codes += w.Code
			}
			return codes
		}
		if code(m.Invalid) != test.invalid || code(m.Warnings) != test.warned {
			t.Errorf("%s: invalid %v, warnings %v", name, m.Invalid, m.Warnings)
		}
		if got := result.FactOf(m.Facts, "cpu.frequency.before"); got != "2500 to 3000 MHz" {
			t.Errorf("frequencies %s", got)
		}
	}
}

// TestFewCPUs checks that a program is not started with more threads than there are CPUs.
func TestFewCPUs(t *testing.T) {
	h := &fakeHost{run: prints("7", nil)}
	_, err := onHost(h).carryOut(t.Context(), workload(t, "sysbench-cpu:cpus=3"), family.Times{}, meter())
	if !errors.Is(err, result.ErrNotSupported) || len(h.ran) > 0 ||
		!strings.Contains(err.Error(), "takes 3 CPUs, and the agent may use 2") {
		t.Errorf("%v; %v ran", err, h.ran)
	}
	_, err = onHost(h).carryOut(t.Context(), workload(t, "sysbench-cpu:cpus=all"), family.Times{}, meter())
	if err != nil || !strings.HasPrefix(h.ran[1], "meter 2 ") {
		t.Errorf("%v; %v ran", err, h.ran)
	}
}

func TestErrors(t *testing.T) {
	exit := func(stderr string) error {
		return &host.ExitError{Command: "meter 1 1", Host: "node1", Status: 1, Stderr: stderr}
	}
	for name, test := range map[string]struct {
		run  func(context.Context, host.Cmd) error
		want string
		is   error
	}{
		"missing": {prints("", fmt.Errorf("x: %w", host.ErrNoCommand)), "meter is not on node1", result.ErrNotSupported},
		"stderr":  {prints("1\n", exit("no memory")), "exit status 1: no memory", nil},
		"stdout":  {prints("a\nFATAL: no memory\nb\n", exit("")), "exit status 1: FATAL: no memory", nil},
		"last":    {prints("a\nb\n\n", exit("")), "exit status 1: b", nil},
		"silent":  {prints("", exit("")), "it printed nothing", nil},
		"output":  {prints("seven", nil), "meter on node1: not a number", errParse},
	} {
		m, err := onHost(&fakeHost{run: test.run}).carryOut(t.Context(), workload(t, "sysbench-cpu"), family.Times{}, meter())
		if err == nil || !strings.Contains(err.Error(), test.want) || test.is != nil && !errors.Is(err, test.is) {
			t.Errorf("%s: %v", name, err)
		}
		if len(m.Raw) == 0 || !strings.HasPrefix(string(m.Raw[0].Data), "node1: meter -v\n") {
			t.Errorf("%s: the evidence is %v", name, m.Raw)
		}
	}
}

// TestHangs checks that a program that does not end is ended.
func TestHangs(t *testing.T) {
	h := &fakeHost{run: func(ctx context.Context, _ host.Cmd) error {
		<-ctx.Done()
		return ctx.Err()
	}}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	_, err := onHost(h).carryOut(ctx, workload(t, "sysbench-cpu"), family.Times{}, meter())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := onHost(h).carryOut(t.Context(), workload(t, "sysbench-cpu"), family.Times{Window: time.Hour}, meter())
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != grace {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

func TestSupports(t *testing.T) {
	for text, want := range map[string]bool{
		"sort": true, "sort:cpus=7": true, "sort:cpus=all": true, "sort:cpus=core": false,
	} {
		if err := checkCPUs("meter", workload(t, text)); (err == nil) != want ||
			err != nil && !errors.Is(err, result.ErrNotSupported) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
