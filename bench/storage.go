package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/storage"
	"github.com/knotmeter/knotmeter/internal/family/storage/fio"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// benchStorage measures the overhead of running fio through Knotmeter: the same job on the same file with the tool and
// with fio alone, in interleaved pairs in alternating order. It needs fio and a directory on a disk.
func benchStorage(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("storage", flag.ContinueOnError)
	pairs := set.Int("pairs", 15, "interleaved pairs per job")
	window := set.Duration("window", time.Second, "window of a run")
	on := set.String("dir", ".", "a directory on a disk")
	size := set.Int64("size", 256<<20, "bytes of the file")
	jobs := set.String("jobs", "randread-4k-qd1,randread-4k-qd64,randwrite-4k-qd64,read-1m-qd16",
		"jobs, separated by commas")
	if err := set.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(*on, "knotmeter-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	b := storageBench{tool: fio.New(), times: family.Times{Warmup: *window / 8, Window: *window}, hosts: host.Pair{
		Client: host.NewLocal("local", netip.MustParseAddr("127.0.0.1"), nil),
		Volume: host.Volume{Path: dir, Size: *size, Kept: "bench"},
	}}
	fmt.Println("job                        pairs  ours/fio  quartiles of ratios  median IOPS of fio")
	for name := range strings.SplitSeq(*jobs, ",") {
		if err := b.compare(ctx, name, *pairs); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// A storageBench has the tool, and the arguments of its runs.
type storageBench struct {
	tool  *fio.Tool
	times family.Times
	hosts host.Pair
}

// compare runs one job in pairs and prints the ratio of its rates.
func (b storageBench) compare(ctx context.Context, name string, pairs int) error {
	w, err := storage.Parse(name, "")
	if err != nil {
		return err
	}
	_, job, err := b.ours(ctx, w) // writes the file
	if err != nil {
		return err
	}
	ours := func() (rate float64, err error) {
		rate, job, err = b.ours(ctx, w)
		return rate, err
	}
	alone := func() (float64, error) { return fioAlone(ctx, job) }
	list, err := interleave(pairs, ours, alone, func(pair[float64]) {})
	if err != nil {
		return err
	}
	r := ratioOf(list, func(rate float64) float64 { return rate })
	fmt.Printf("%-26s %5d  %8.4f  %.4f to %.4f     %.0f\n", name, pairs, r.ofMedians, r.q1, r.q3, r.theirs)
	return nil
}

// ours returns the rate per second with the tool, and its job file.
func (b storageBench) ours(ctx context.Context, w storage.Job) (rate float64, job string, err error) {
	m, err := b.tool.Run(ctx, b.hosts, w, b.times)
	if err != nil {
		return 0, "", err
	}
	for _, f := range m.Raw {
		if f.Name == "fio.job" {
			job = string(f.Data)
		}
	}
	v, ok := result.Run{Values: m.Values}.Value(metric.Rate)
	if !ok {
		return 0, "", fmt.Errorf("there is no rate: %v", m.Invalid)
	}
	return v.Number, job, nil
}

// fioAlone returns the rate per second of fio as run by hand, without options for additional output.
func fioAlone(ctx context.Context, job string) (float64, error) {
	cmd := exec.CommandContext(ctx, "fio", "--output-format=json", "-")
	cmd.Stdin = strings.NewReader(strings.Replace(job, "lat_percentiles=1\n", "", 1))
	text, err := output(cmd)
	if err != nil {
		return 0, err
	}
	var out struct {
		Jobs []struct {
			Read, Write struct{ IOPS float64 }
		}
	}
	if err := json.Unmarshal(text[max(bytes.IndexByte(text, '{'), 0):], &out); err != nil || len(out.Jobs) != 1 {
		return 0, fmt.Errorf("fio's JSON: %d jobs, %w", len(out.Jobs), err)
	}
	return out.Jobs[0].Read.IOPS + out.Jobs[0].Write.IOPS, nil
}
