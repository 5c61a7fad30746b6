//go:build linux

// Package storage measures what it costs to let Knotmeter run fio: the same job on the same file by fio alone and by
// the tool, in interleaved pairs whose order alternates. It needs fio and a directory on a disk.
package storage

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
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/storage"
	"github.com/knotmeter/knotmeter/internal/family/storage/fio"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// A bench is the flags, and what is measured with them.
type bench struct {
	pairs  int
	window time.Duration
	size   int64
	dir    string
	tool   *fio.Tool
	pair   host.Pair
}

// Run compares the jobs and prints a table.
func Run(ctx context.Context, args []string) error {
	b := bench{tool: fio.New()}
	var jobs string
	set := flag.NewFlagSet("storage", flag.ContinueOnError)
	set.IntVar(&b.pairs, "pairs", 15, "interleaved pairs per job")
	set.DurationVar(&b.window, "window", time.Second, "window of a run")
	set.StringVar(&b.dir, "dir", ".", "a directory on a disk")
	set.Int64Var(&b.size, "size", 256<<20, "bytes of the file")
	set.StringVar(&jobs, "jobs", "randread-4k-qd1,randread-4k-qd64,randwrite-4k-qd64,read-1m-qd16",
		"the jobs, with commas between")
	if err := set.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(b.dir, "knotmeter-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	b.pair = host.Pair{Client: host.NewLocal("local", netip.MustParseAddr("127.0.0.1"), nil),
		Volume: host.Volume{Path: dir, Size: b.size, Kept: "bench"}}
	fmt.Println("job                        pairs  ours/fio  quartiles of ratios  median IOPS of fio")
	for name := range strings.SplitSeq(jobs, ",") {
		if err := b.compare(ctx, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// compare runs one job in pairs.
func (b *bench) compare(ctx context.Context, name string) error {
	w, err := storage.Parse(name, "")
	if err != nil {
		return err
	}
	_, job, err := b.ours(ctx, w) // the file is written here
	if err != nil {
		return err
	}
	var ours, theirs, ratios []float64
	for i := range b.pairs {
		var a, p float64
		if i%2 == 1 { // each is first as often as the other
			if p, err = plain(ctx, job); err != nil {
				return err
			}
		}
		if a, job, err = b.ours(ctx, w); err != nil {
			return err
		}
		if i%2 == 0 {
			if p, err = plain(ctx, job); err != nil {
				return err
			}
		}
		ours, theirs, ratios = append(ours, a), append(theirs, p), append(ratios, a/p)
	}
	r, iops := stats.Summarise(ratios), stats.Median(theirs)
	fmt.Printf("%-26s %5d  %8.4f  %.4f to %.4f     %.0f\n", name, b.pairs, stats.Median(ours)/iops, r.Q1, r.Q3, iops)
	return nil
}

// ours is the rate by the tool, and the job file that it ran.
func (b *bench) ours(ctx context.Context, w storage.Job) (rate float64, job string, err error) {
	m, err := b.tool.Run(ctx, b.pair, w, family.Times{Warmup: b.window / 8, Window: b.window})
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

// plain is the rate by fio alone, as somebody runs it by hand: without the options that make it tell more.
func plain(ctx context.Context, job string) (float64, error) {
	var lines []string
	for line := range strings.Lines(job) {
		if strings.TrimSpace(line) != "lat_percentiles=1" {
			lines = append(lines, line)
		}
	}
	cmd := exec.CommandContext(ctx, "fio", "--output-format=json", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, ""))
	text, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("fio: %w", err)
	}
	var out struct {
		Jobs []struct {
			Read, Write struct {
				Rate json.Number `json:"iops"`
			}
		}
	}
	if err := json.Unmarshal(text[max(bytes.IndexByte(text, '{'), 0):], &out); err != nil || len(out.Jobs) != 1 {
		return 0, fmt.Errorf("fio's JSON: %d jobs, %w", len(out.Jobs), err)
	}
	read, err := strconv.ParseFloat(out.Jobs[0].Read.Rate.String(), 64)
	if err != nil {
		return 0, err
	}
	write, err := strconv.ParseFloat(out.Jobs[0].Write.Rate.String(), 64)
	return read + write, err
}
