// Command vegeta sends requests to a URL with vegeta's library for `bench web`, and prints in JSON the numbers of
// answers and failures, the 99th percentile of lateness in seconds, and the CPU time in seconds.
//
// vegeta records when a request is sent, not when it was due. Lateness is relative to the latest schedule at the given
// rate by which no request is early.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"syscall"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

func main() {
	url := flag.String("url", "", "URL to send requests to")
	rate := flag.Int("rate", 1000, "requests per second")
	duration := flag.Duration("duration", time.Second, "duration of the load")
	flag.Parse()
	targeter := vegeta.NewStaticTargeter(vegeta.Target{Method: "GET", URL: *url})
	attacker := vegeta.NewAttacker(vegeta.KeepAlive(true), vegeta.Connections(10000))
	before := cpu()
	var sent []time.Time
	var seqs []uint64
	ok, failed := 0, 0
	for r := range attacker.Attack(targeter, vegeta.Rate{Freq: *rate, Per: time.Second}, *duration, "bench") {
		sent, seqs = append(sent, r.Timestamp), append(seqs, r.Seq)
		if r.Code == 200 {
			ok++
		} else {
			failed++
		}
	}
	used := cpu() - before
	late := lateness(sent, seqs, float64(*rate))
	out := map[string]any{"ok": ok, "failed": failed, "late_p99": quantile(late, 0.99), "cpu": used.Seconds()}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		fmt.Fprintln(os.Stderr, "vegeta:", err)
		os.Exit(1)
	}
}

// lateness returns the lateness of each request in seconds.
func lateness(sent []time.Time, seqs []uint64, rate float64) []float64 {
	late := make([]float64, len(sent))
	first := math.Inf(1)
	for i, t := range sent {
		late[i] = t.Sub(sent[0]).Seconds() - float64(seqs[i])/rate
		first = min(first, late[i])
	}
	for i := range late {
		late[i] -= first
	}
	return late
}

// quantile sorts the list and returns its quantile q, from 0 to 1.
func quantile(list []float64, q float64) float64 {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[min(len(list)-1, int(q*float64(len(list))))]
}

// cpu returns the CPU time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
