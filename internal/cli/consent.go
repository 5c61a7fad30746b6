package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/plan"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/target"
)

// concern is something that needs consent, and why.
func concern(what, why string) plan.Concern { return plan.Concern{What: what, Why: why} }

// consent is the one question about all concerns: an error that lists them, unless yes.
func consent(list []plan.Concern, yes bool) error {
	if len(list) == 0 || yes {
		return nil
	}
	var b strings.Builder
	for _, c := range list {
		fmt.Fprintf(&b, "\n%s", c)
	}
	return fmt.Errorf("--yes: consent is needed; add --yes if you agree to this:%s", b.String())
}

// concerns lists what of an experiment needs consent. Targets only state where requests would go; none is sent.
func concerns(e result.Experiment, targets []runner.Target) []plan.Concern {
	var list []plan.Concern
	for _, l := range loads(e, targets) {
		list = append(list, l.concerns()...)
	}
	for _, t := range targets {
		if p, is := t.Places.(target.Privileged); is && p.Privileges() != "" {
			list = append(list, concern(t.Name, p.Privileges()))
		}
	}
	return unique(list)
}

// A load is the requests over HTTP of a case.
type load struct {
	name     string
	disturbs string           // other users of what it asks; empty: no
	to       host.Destination // nowhere: the API server of each target
}

// workloads are those of the cases of an experiment. The runner reports a case that is none.
func workloads(e result.Experiment) []family.Workload {
	var list []family.Workload
	for _, c := range e.Cases {
		if known, err := registry.Families().Parse(c.Name, c.Definition); err == nil {
			list = append(list, known.Workload)
		}
	}
	return list
}

// loads lists the requests over HTTP of an experiment, except those to applications that targets deploy for themselves.
func loads(e result.Experiment, targets []runner.Target) []load {
	times := family.TimesOf(e.Design)
	var list []load
	for _, w := range workloads(e) {
		r, is := w.(family.Request)
		if !is {
			continue
		}
		l := load{name: w.String(), disturbs: r.Disturbs(times), to: r.Sends().To}
		application := w.Traits().Needs.Application
		if application == "" {
			list = append(list, l)
			continue
		}
		for _, to := range applications(application, targets) {
			l.to = to
			list = append(list, l)
		}
	}
	return list
}

// applications lists where those are that targets ask and have not deployed: the one of a name, or without all of them.
func applications(name string, targets []runner.Target) []host.Destination {
	var list []host.Destination
	for _, t := range targets {
		c, is := t.Places.(target.Caller)
		if !is {
			continue
		}
		of := c.Applications()
		for _, key := range slices.Sorted(maps.Keys(of)) {
			if name == "" || name == key {
				list = append(list, of[key])
			}
		}
	}
	return list
}

func (l load) concerns() []plan.Concern {
	var list []plan.Concern
	if l.disturbs != "" {
		what := l.name
		if l.to.URL != "" {
			what += " on " + l.to.URL
		}
		list = append(list, concern(what, l.disturbs+", and other users may feel it"))
	}
	return append(list, destinationConcerns(l.to)...)
}

// destinationConcerns lists what needs consent before anything is sent to a destination.
func destinationConcerns(to host.Destination) []plan.Concern {
	var list []plan.Concern
	if to.Variable != "" {
		list = append(list, concern(to.URL, "the environment variable "+to.Variable+" names it, not the command line"))
	}
	if to.Exposed() {
		list = append(list, concern(to.URL,
			"requests carry a secret there over plain HTTP, which anyone on the way can read"))
	}
	return list
}

// destinations lists where the requests of an experiment go, other than to API servers.
func destinations(e result.Experiment, targets []runner.Target) []host.Destination {
	var list []host.Destination
	for _, l := range loads(e, targets) {
		if l.to.URL != "" {
			list = append(list, l.to)
		}
	}
	return list
}

// announce writes where requests go, before the first is sent.
func announce(w io.Writer, list []host.Destination) {
	var lines []string
	for _, to := range list {
		lines = append(lines, "Requests go to "+destinationWords(to))
	}
	for _, line := range unique(lines) {
		fmt.Fprintln(w, line)
	}
}

func destinationWords(to host.Destination) string {
	words := to.URL
	if len(to.Addresses) > 0 {
		words += " at " + strings.Join(to.Addresses, ", ")
	}
	if to.Variable != "" {
		words += " (from " + to.Variable + ")"
	}
	return words
}

// unique is a list with the first of each value, in order.
func unique[T comparable](list []T) []T {
	var kept []T
	for _, v := range list {
		if !slices.Contains(kept, v) {
			kept = append(kept, v)
		}
	}
	return kept
}
