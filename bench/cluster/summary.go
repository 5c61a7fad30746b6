package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// requestsTotal is the API server's counter of requests, by verb, resource and more. Watches and commands in pods count
// when they end.
const requestsTotal = "apiserver_request_total"

// requestsIn adds up the counter of requests in the API server's metrics.
func requestsIn(text string) (float64, error) {
	var sum float64
	found := false
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, requestsTotal+"{") {
			continue
		}
		words := strings.Fields(line[strings.LastIndexByte(line, '}')+1:])
		if len(words) == 0 {
			return 0, fmt.Errorf("the API server's metrics: no number in %q", line)
		}
		n, err := strconv.ParseFloat(words[0], 64)
		if err != nil {
			return 0, fmt.Errorf("the API server's metrics: %q: %w", line, err)
		}
		sum, found = sum+n, true
	}
	if !found {
		return 0, errors.New("the API server's metrics have no " + requestsTotal)
	}
	return sum, nil
}

// A summary is what runs take. Times are in seconds.
type summary struct {
	runs, invalid int
	pods, calls   spread
	setup         spread
	cleanup       spread
	outside       spread
	requests      float64 // of the whole cluster to its API server, for each run
	share         float64 // of the time from the first run's beginning to the last one's end, in windows
	shareOfAll    float64 // of the command's whole time
}

// A spread is the least, the median and the largest of some numbers.
type spread struct{ least, median, most float64 }

func spreadOf(x []float64) spread { return spread{slices.Min(x), stats.Median(x), slices.Max(x)} }

func (s spread) format(digits int) string {
	f := func(v float64) string { return strconv.FormatFloat(v, 'f', digits, 64) }
	return fmt.Sprintf("%s | %s to %s", f(s.median), f(s.least), f(s.most))
}

// summarise says what runs take that lasted wall seconds in all and made as many requests more than the idle cluster.
func summarise(runs []result.Run, wall, requests float64) (summary, error) {
	if len(runs) == 0 {
		return summary{}, errors.New("there are no runs")
	}
	var s summary
	var pods, calls, setup, cleanup, outside []float64
	var measuring float64
	first, last := runs[0].Start, runs[0].Start
	for _, r := range runs {
		p, known := r.Value(metric.Pods)
		c, knownToo := r.Value(metric.APICalls)
		if !r.Valid() {
			s.invalid++
		}
		if known && knownToo { // else its places could not be opened
			pods, calls = append(pods, p.Number), append(calls, c.Number)
		}
		setup, cleanup, outside = append(setup, r.Setup), append(cleanup, r.Cleanup), append(outside, r.Setup+r.Cleanup)
		measuring += r.Window
		if r.Start.Before(first) {
			first = r.Start
		}
		if end := r.Start.Add(time.Duration((r.Setup + r.Window + r.Cleanup) * float64(time.Second))); end.After(last) {
			last = end
		}
	}
	if len(pods) == 0 {
		return summary{}, errors.New("no run says what it took of the cluster")
	}
	s.runs = len(runs)
	s.pods, s.calls, s.setup, s.cleanup, s.outside = spreadOf(pods), spreadOf(calls), spreadOf(setup), spreadOf(cleanup), spreadOf(outside)
	s.requests = requests / float64(len(runs))
	s.share, s.shareOfAll = measuring/last.Sub(first).Seconds(), measuring/wall
	return s, nil
}

// table is a table for people, in Markdown.
func (s summary) table(window string) string {
	var b strings.Builder
	row := func(name, value string) { fmt.Fprintf(&b, "| %s | %s |\n", name, value) }
	b.WriteString("| of each run | median | from, to |\n|---|---|---|\n")
	row("pods started", s.pods.format(0))
	row("requests of ours to the API server", s.calls.format(0))
	row("requests of all of the cluster, mean", fmt.Sprintf("%.0f | ", s.requests))
	row("seconds outside the window", s.outside.format(1))
	row("… before it, with 0.2 s of warm-up", s.setup.format(1))
	row("… after it", s.cleanup.format(1))
	fmt.Fprintf(&b, "\n%d runs with windows of %s, %d of them invalid: %.0f %% of the time from the first run to the last were measuring, %.0f %% of the command's.\n",
		s.runs, window, s.invalid, 100*s.share, 100*s.shareOfAll)
	return b.String()
}
