//go:build linux

// Package report measures how long the program takes to report on many runs, and how much memory:
// it writes a results directory of made-up runs that look like those of the native tool, and lets the
// program render it, one process for each format.
package report

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	runs    int
	binary  string
	dir     string
	formats string
}

func parse(args []string) (options, error) {
	var o options
	set := flag.NewFlagSet("report", flag.ContinueOnError)
	set.IntVar(&o.runs, "runs", 100_000, "runs, at least; whole blocks")
	set.StringVar(&o.binary, "binary", "bin/knotmeter", "the program")
	set.StringVar(&o.dir, "dir", "", "keep the results directory here, and take it from here if it exists")
	set.StringVar(&o.formats, "formats", "html,json,csv,table,markdown,bench,openmetrics,png", "formats to measure")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if o.runs < 1 {
		return o, errors.New("-runs is below 1")
	}
	binary, err := filepath.Abs(o.binary)
	if err != nil {
		return o, err
	}
	if _, err := os.Stat(binary); err != nil {
		return o, fmt.Errorf("-binary: %w; build it first: make build", err)
	}
	o.binary = binary
	return o, nil
}

// Run measures each format and prints a table.
func Run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	dir := o.dir
	if dir == "" {
		parent, err := os.MkdirTemp("", "knotmeter-report-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(parent)
		dir = filepath.Join(parent, "results")
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		if err := synthesise(ctx, dir, o.runs); err != nil {
			return fmt.Errorf("make the results: %w", err)
		}
	}
	fmt.Printf("%-12s %9s %12s %12s %10s\n", "format", "seconds", "CPU seconds", "peak memory", "file")
	for _, format := range strings.Split(o.formats, ",") {
		line, err := measure(ctx, o.binary, dir, format)
		if err != nil {
			return err
		}
		fmt.Println(line)
	}
	return nil
}

// measure renders one format in a process of its own. Its peak memory is the kernel's count of
// resident pages (ru_maxrss), which for a moment includes this program's own, a few MB.
func measure(ctx context.Context, binary, dir, format string) (string, error) {
	cmd := exec.CommandContext(ctx, binary, "report", dir, "--format", format)
	var errs strings.Builder
	cmd.Stderr = &errs
	start := time.Now()
	out, err := cmd.Output()
	took := time.Since(start)
	if err != nil {
		return "", fmt.Errorf("report --format %s: %w\n%s", format, err, errs.String())
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return "", errors.New("this system does not count what a process used")
	}
	file, err := os.Stat(strings.TrimSpace(string(out)))
	if err != nil {
		return "", fmt.Errorf("the file that report --format %s named: %w", format, err)
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return fmt.Sprintf("%-12s %9.1f %12.1f %9d MB %7.1f MB",
		format, took.Seconds(), cpu.Seconds(), usage.Maxrss/1000, float64(file.Size())/1e6), nil
}
