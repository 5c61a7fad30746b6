package main

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

// requestsTotal is the API server's counter of requests, by verb, resource and other labels. Watches and commands in
// pods are counted when they end.
const requestsTotal = "apiserver_request_total"

// requestsIn returns the sum of the counters of requests in the API server's metrics.
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

// A siteCosts is the overhead of sites and runs. Times are in seconds.
type siteCosts struct {
	sites, runs, invalid int
	pods, calls          spread  // per site
	setup, cleanup       spread  // per site
	outside              spread  // time of a run outside its window
	requests             float64 // of the whole cluster to its API server, per site
	share                float64 // of windows in the time from the first start to the last end
	shareOfAll           float64 // of windows in the command's wall time
}

// A spread has the minimum, the median and the maximum of numbers.
type spread struct{ least, median, most float64 }

func spreadOf(x []float64) spread { return spread{slices.Min(x), stats.Median(x), slices.Max(x)} }

func (s spread) format(digits int) string {
	f := func(v float64) string { return strconv.FormatFloat(v, 'f', digits, 64) }
	return fmt.Sprintf("%s | %s to %s", f(s.median), f(s.least), f(s.most))
}

// summarise returns the overhead of sites and runs. wall is the command's time in seconds; requests is the number of
// requests in addition to those of the idle cluster.
func summarise(sites []result.Site, runs []result.Run, wall, requests float64) (siteCosts, error) {
	s := siteCosts{sites: len(sites), runs: len(runs)}
	var pods, calls, setup, cleanup, outside []float64
	var ends []time.Time
	for _, site := range sites {
		p, known := site.Value(metric.Pods)
		c, knownToo := site.Value(metric.APICalls)
		if known && knownToo { // false if the site could not be opened
			pods, calls = append(pods, p.Number), append(calls, c.Number)
			setup, cleanup = append(setup, site.Setup), append(cleanup, site.Cleanup)
		}
		ends = append(ends, site.Start, site.End())
	}
	if len(pods) == 0 || len(runs) == 0 {
		return siteCosts{}, errors.New("there are no runs, or no site records what it took of the cluster")
	}
	var measuring float64
	for _, r := range runs {
		if !r.Valid() {
			s.invalid++
		}
		outside = append(outside, r.Setup+r.Cleanup)
		measuring += r.Window
		ends = append(ends, r.Start, r.End())
	}
	first, last := slices.MinFunc(ends, time.Time.Compare), slices.MaxFunc(ends, time.Time.Compare)
	s.pods, s.calls, s.setup, s.cleanup = spreadOf(pods), spreadOf(calls), spreadOf(setup), spreadOf(cleanup)
	s.outside = spreadOf(outside)
	s.requests = requests / float64(len(sites))
	s.share, s.shareOfAll = measuring/last.Sub(first).Seconds(), measuring/wall
	return s, nil
}

// table returns a table in Markdown.
func (s siteCosts) table(window string) string {
	var b strings.Builder
	row := func(name, value string) { fmt.Fprintf(&b, "| %s | %s |\n", name, value) }
	b.WriteString("| | median | from, to |\n|---|---|---|\n")
	row("pods started for a site", s.pods.format(0))
	row("Knotmeter's requests to the API server for a site", s.calls.format(0))
	row("requests of all of the cluster for a site, mean", fmt.Sprintf("%.0f | ", s.requests))
	row("seconds to make a site", s.setup.format(1))
	row("seconds to remove it", s.cleanup.format(1))
	row("seconds of a run outside its window, with 0.2 s of warm-up", s.outside.format(1))
	fmt.Fprintf(&b, "\n%d sites, %d runs with windows of %s, %d of them invalid: ", s.sites, s.runs, window, s.invalid)
	fmt.Fprintf(&b, "%.0f %% of the time from start to end were spent measuring, %.0f %% of the command's.\n",
		100*s.share, 100*s.shareOfAll)
	return b.String()
}
