package compute

import (
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/parameter"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// The times of a run outside of its window.
const (
	setupLimit  = time.Minute             // to fill a working set, on a slow machine
	usualSetup  = 30 * time.Millisecond   // with none
	usualPerGiB = 1200 * time.Millisecond // to fill one
)

// AloneShare is the part of the window for which one CPU is measured alone before several are.
const AloneShare = 0.25

// Traits returns the traits of the workload. It needs a client, whose machine it measures, and nothing else.
func (w Workload) Traits() family.Traits {
	k := w.Kind.properties()
	t := family.Traits{
		Path: path, Kind: w.Title(), Metric: k.metric, Load: result.Load{Local: true},
		Words:   result.Words{Subject: w.subject(k), Quantity: quantities[k.metric]},
		Needs:   targets.Placement{Machine: true},
		Limits:  family.Limits{Run: setupLimit, Windows: 2},
		Nominal: family.Nominal{Run: usualSetup + usualPerGiB*time.Duration(w.Set>>10)/(1<<20)},
	}
	if k.group != "" {
		t.Words.Group, t.Words.Member = k.group, w.member(k)
	}
	if w.CPUs != OneCPU {
		t.Nominal.Windows = AloneShare
	}
	return t
}

// quantities are names of the metrics that verdicts are about, for readers.
var quantities = map[string]string{
	metric.Bandwidth: "bandwidth", metric.Rate: "rate", metric.Mean: "mean latency", metric.P50: "latency",
}

// subject returns what is measured, for readers: "Memory latency, 16 KiB, all CPUs".
func (w Workload) subject(k kind) string {
	return strings.Join(append([]string{k.subject}, w.details(k)...), ", ")
}

// member returns the name of the case in its group.
func (w Workload) member(k kind) string { return strings.Join(w.details(k), ", ") }

// details returns the parameters that are not the defaults, for readers.
func (w Workload) details(k kind) []string {
	var list []string
	if w.Pages == SmallPages {
		list = append(list, "4 KiB pages")
	} else if w.Pages == HugePages {
		list = append(list, "huge pages")
	}
	if w.Set != k.set {
		size := parameter.SizeText(w.Set)
		number := strings.TrimRight(size, "KMGiB")
		list = append(list, number+" "+strings.TrimPrefix(size, number))
	}
	if w.CPUs != k.cpus {
		list = append(list, w.CPUs.words())
	}
	return list
}
