package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// benchReport measures time and memory of reports on many runs, and prints a table. It writes a results directory of
// synthetic runs like those of the native tool, and runs the program once for each format.
func benchReport(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("report", flag.ContinueOnError)
	runs := set.Int("runs", 100_000, "runs, at least; whole blocks")
	name := set.String("binary", "bin/knotmeter", "the program")
	keep := set.String("dir", "", "keep the results directory here, and take it from here if it exists")
	formats := set.String("formats", "html,json,csv,table,markdown,bench,openmetrics,svg", "formats to measure")
	if err := set.Parse(args); err != nil {
		return err
	}
	if *runs < 1 {
		return errors.New("-runs is below 1")
	}
	binary, err := filepath.Abs(*name)
	if err != nil {
		return err
	}
	if _, err := os.Stat(binary); err != nil {
		return fmt.Errorf("-binary: %w; build it first: make build", err)
	}
	dir := *keep
	if dir == "" {
		parent, err := os.MkdirTemp("", "knotmeter-report-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(parent)
		dir = filepath.Join(parent, "results")
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		if err := synthesise(ctx, dir, *runs); err != nil {
			return fmt.Errorf("make the results: %w", err)
		}
	}
	fmt.Printf("%-12s %9s %12s %12s %10s\n", "format", "seconds", "CPU seconds", "peak memory", "file")
	for format := range strings.SplitSeq(*formats, ",") {
		if err := render(ctx, binary, dir, format); err != nil {
			return err
		}
	}
	return nil
}

// render renders one format with the program, and prints time, memory and size. The peak memory is the kernel's
// ru_maxrss, which includes a few MB of this process before exec.
func render(ctx context.Context, binary, dir, format string) error {
	c := knotmeter(ctx, binary, "report", dir, "--format", format)
	start := time.Now()
	out, err := output(c)
	took := time.Since(start)
	if err != nil {
		return err
	}
	usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return errors.New("this system does not count what a process used")
	}
	var size int64
	for path := range strings.Lines(string(out)) {
		file, err := os.Stat(strings.TrimSpace(path))
		if err != nil {
			return fmt.Errorf("the file that report --format %s named: %w", format, err)
		}
		size += file.Size()
	}
	cpu := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	fmt.Printf("%-12s %9.1f %12.1f %9d MB %7.1f MB\n",
		format, took.Seconds(), cpu.Seconds(), usage.Maxrss/1000, float64(size)/1e6)
	return nil
}
