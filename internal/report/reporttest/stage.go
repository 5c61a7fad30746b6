package reporttest

import (
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A stage is where the runs of a block take place: it has the sites of all blocks so far, and the clock.
type stage struct {
	clock time.Time
	sites []result.Site
	open  map[string]int // sites of the block, by target
}

// begin opens the sites of a block at the same time.
func (s *stage) begin(block int, targets ...string) {
	s.open = map[string]int{}
	ready := s.clock
	for i, target := range targets {
		site := result.Site{
			Schema: result.SiteSchema, Number: len(s.sites) + 1, Target: target, Block: block, Start: s.clock,
			Setup: 0.5 + 0.05*float64((i+block)%4), Cleanup: 0.1 + 0.02*float64(block%3),
		}
		if strings.HasPrefix(target, "kube:") {
			site.Setup, site.Cleanup = 6*site.Setup, 10*site.Cleanup
			site.Values = []result.Value{
				result.NewValue(metric.Named(metric.Pods), 4), result.NewValue(metric.Named(metric.APICalls), 30),
			}
		}
		if end := site.End(); end.After(ready) {
			ready = end
		}
		s.open[target] = site.Number
		s.sites = append(s.sites, site)
	}
	s.clock = ready
}

// end closes them at the same time.
func (s *stage) end() {
	began, gone := s.clock, s.clock
	for _, number := range s.open {
		site := &s.sites[number-1]
		site.Used = began.Sub(site.Start).Seconds() - site.Setup
		if end := site.End(); end.After(gone) {
			gone = end
		}
	}
	s.clock = gone
}
