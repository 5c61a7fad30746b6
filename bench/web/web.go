//go:build linux

// Package web measures the generator of requests over HTTP against wrk, in a closed loop, and against vegeta, in an
// open one: on the same server, on the same CPUs, in interleaved pairs whose order alternates. It needs wrk, taskset
// and two CPUs.
package web

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// The arguments by which this program starts itself.
const (
	beServer = "be-a-server"
	beOurs   = "be-ours"
)

// options are the flags.
type options struct {
	only           string
	pairs, clients int
	duration       time.Duration
	limit          time.Duration
	rate           float64
	realtime       bool
	verbose        bool
}

// Run compares both loops; it starts itself with another argument as server and client.
func Run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == beServer {
		return serve()
	}
	if len(args) > 1 && args[0] == beOurs {
		return ours(ctx, args[1])
	}
	var o options
	set := flag.NewFlagSet("web", flag.ContinueOnError)
	set.StringVar(&o.only, "only", "", "closed, open or memory; empty is the first two")
	set.IntVar(&o.pairs, "pairs", 7, "interleaved pairs per comparison")
	set.IntVar(&o.clients, "clients", 32, "of the closed loop")
	set.DurationVar(&o.duration, "duration", 2*time.Second, "of a run; of memory, the whole of it")
	set.DurationVar(&o.limit, "limit", time.Millisecond, "of the 99th percentile of lateness")
	set.Float64Var(&o.rate, "rate", 5000, "requests per second of memory")
	set.BoolVar(&o.realtime, "realtime", false, "all sides go before whatever else runs (SCHED_RR), on a machine that others use too; takes root")
	set.BoolVar(&o.verbose, "v", false, "print every run")
	if err := set.Parse(args); err != nil {
		return err
	}
	if o.rate <= 0 || o.duration <= 0 || o.pairs < 1 || o.clients < 1 {
		return errors.New("-rate, -duration, -pairs and -clients are above 0")
	}
	if runtime.NumCPU() < 2 {
		return errors.New("client and server each need a CPU of their own")
	}
	b := &bench{options: o}
	defer b.close()
	if err := b.start(ctx); err != nil {
		return err
	}
	return b.compare(ctx)
}

// A bench is a server, and who asks it.
type bench struct {
	options
	server *exec.Cmd
	dir    string
	url    string
}

// CPUs of the two sides.
const (
	clientCPU = "0"
	serverCPU = "1"
)

func (b *bench) start(ctx context.Context) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "bench-web"); err != nil {
		return err
	}
	b.server = exec.CommandContext(ctx, "taskset", b.placed(serverCPU, self, "web", beServer)...)
	out, err := b.server.StdoutPipe()
	if err != nil {
		return err
	}
	b.server.Stderr = os.Stderr
	if err := b.server.Start(); err != nil {
		return err
	}
	if _, err := fmt.Fscanln(out, &b.url); err != nil {
		return fmt.Errorf("the server does not start: %w", err)
	}
	return nil
}

func (b *bench) close() {
	if b.server != nil && b.server.Process != nil {
		_ = b.server.Process.Kill()
		_ = b.server.Wait()
	}
	if b.dir != "" {
		_ = os.RemoveAll(b.dir)
	}
}

func (b *bench) compare(ctx context.Context) error {
	if b.only == "memory" {
		return b.memory(ctx)
	}
	if b.only == "" || b.only == "closed" {
		if err := b.closed(ctx); err != nil {
			return err
		}
	}
	if b.only == "" || b.only == "open" {
		return b.open(ctx)
	}
	return nil
}

// placed are the arguments of taskset for a command on a CPU.
func (b *bench) placed(cpu string, args ...string) []string {
	list := []string{"-c", cpu}
	if b.realtime {
		list = append(list, "chrt", "-r", "1")
	}
	return append(list, args...)
}

// on runs a command on the client's CPU.
func (b *bench) on(ctx context.Context, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, "taskset", b.placed(clientCPU, args...)...)
	var stderr strings.Builder
	c.Stderr = io.MultiWriter(&stderr, os.Stderr)
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", args[0], err, stderr.String())
	}
	return out, nil
}

// A figure is what one run came to.
type figure struct {
	Sent    int     `json:"sent"` // requests that were answered
	Failed  int     `json:"failed"`
	LateP99 float64 `json:"late_p99"` // s
	CPU     float64 `json:"cpu"`      // s
	Elapsed float64 `json:"elapsed"`  // s of the window
}

// A job is a run of ours.
type job struct {
	URL      string
	Rate     float64
	Clients  int
	Duration time.Duration
	RSS      time.Duration // how often to tell the size of the process; 0: never
}

// ask runs ours.
func (b *bench) ask(ctx context.Context, j job) (figure, error) {
	self, err := os.Executable()
	if err != nil {
		return figure{}, err
	}
	j.URL = b.url
	text, err := json.Marshal(j)
	if err != nil {
		return figure{}, err
	}
	out, err := b.on(ctx, self, "web", beOurs, string(text))
	if err != nil {
		return figure{}, err
	}
	var f figure
	return f, json.Unmarshal(out, &f)
}

// buildVegeta compiles the program of bench/vegeta.
func (b *bench) buildVegeta(ctx context.Context) (string, error) {
	_, file, _, _ := runtime.Caller(0)
	at := filepath.Join(b.dir, "vegeta")
	c := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(filepath.Dir(file), "..", "vegeta"), "-o", at, ".")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build vegeta: %w: %s", err, out)
	}
	return at, nil
}
