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
)

// importTables are the tables that benchImport imports. Each row is a run; %d is its number.
var importTables = []struct{ name, header, row string }{
	{"short rows", "case,target,metric,unit,value", "pod-pod/other/stream,a,throughput,Gbit/s,9.%d"},
	{"short rows, column run", "run,case,target,metric,unit,value", "%d,pod-pod/other/stream,a,throughput,Gbit/s,9.4"},
	{"rows of 1 kB", "case,target,metric,unit,value,note", "pod-pod/other/stream,a,throughput,Gbit/s,9.4,%d" +
		strings.Repeat("x", 1000)},
}

// benchImport measures the peak memory of imports of large tables as multiples of their sizes. Several programs take
// turns.
func benchImport(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("import", flag.ContinueOnError)
	size := set.Int("size", 64, "size of each table, in MiB")
	rounds := set.Int("rounds", 3, "imports of each table by each program")
	binaries := set.String("binaries", "bin/knotmeter", "the programs, separated by commas")
	if err := set.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "knotmeter-import-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Printf("%-24s %-20s %11s %12s %14s\n", "table", "program", "CPU seconds", "peak memory", "times the file")
	for _, t := range importTables {
		var text strings.Builder
		fmt.Fprintln(&text, t.header)
		for i := 1; text.Len() < *size<<20; i++ {
			fmt.Fprintf(&text, t.row+"\n", i)
		}
		file := filepath.Join(dir, "table.csv")
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			return err
		}
		length := text.Len()
		text.Reset()
		for range *rounds {
			for binary := range strings.SplitSeq(*binaries, ",") {
				out := filepath.Join(dir, "out")
				c := knotmeter(ctx, binary, "import", "csv", file, "--out", out)
				if _, err := output(c); err != nil {
					return err
				}
				usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage)
				if !ok {
					return errors.New("this system does not count what a process used")
				}
				cpu := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
				peak := float64(usage.Maxrss) * 1024
				fmt.Printf("%-24s %-20s %11.1f %9.0f MB %14.1f\n", t.name, filepath.Base(binary), cpu.Seconds(), peak/1e6,
					peak/float64(length))
				if err := os.RemoveAll(out); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
