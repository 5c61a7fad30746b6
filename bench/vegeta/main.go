// Command vegeta attacks a URL with vegeta's own library for the comparison of `bench web`, and prints in JSON how many
// requests were answered, how late it was, and what CPU time it took.
//
// vegeta stamps a request when it is sent. How late that was is counted from the plan that fits it best: the earliest
// that no request would have been ahead of.
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
	url := flag.String("url", "", "to attack")
	rate := flag.Int("rate", 1000, "requests per second")
	duration := flag.Duration("duration", time.Second, "of the attack")
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

// lateness is in seconds, of each request.
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

func quantile(list []float64, q float64) float64 {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[min(len(list)-1, int(q*float64(len(list))))]
}

func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
