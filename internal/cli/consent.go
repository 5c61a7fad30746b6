package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/plan"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// concern returns a plan.Concern.
func concern(what, why string) plan.Concern { return plan.Concern{What: what, Why: why} }

// consent asks the user once for consent to all concerns, unless *yes is set, and sets *yes if the user agrees. It
// returns an error if the user disagrees, or if the user cannot be asked; the error then lists the concerns.
func consent(ctx context.Context, s Streams, list []plan.Concern, yes *bool) error {
	if len(list) == 0 || *yes {
		return nil
	}
	var b strings.Builder
	for _, c := range list {
		fmt.Fprintf(&b, "\n%s", c)
	}
	if !s.Interactive {
		return fmt.Errorf("--yes: consent is needed; add --yes if you agree to this:%s", b.String())
	}
	fmt.Fprintf(s.Err, "Consent is needed (--yes gives it without this question):%s\nContinue? [y/N] ",
		strings.ReplaceAll(b.String(), "\n", "\n  "))
	answers := make(chan string, 1)
	go func() { // ends only with an answer
		line, _ := bufio.NewReader(s.In).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return &statusError{statusInterrupted, errors.New("interrupted before the first run; nothing was written")}
	case answer := <-answers:
		if *yes = answer == "y" || answer == "yes"; !*yes {
			return errors.New("not agreed; nothing was measured")
		}
		return nil
	}
}

// concerns lists the effects of an experiment that need consent. It sends no requests.
func concerns(e result.Experiment, measured []runner.Target) []plan.Concern {
	all := loads(e, measured)
	list := disturbances(all)
	for _, l := range all {
		list = append(list, destinationConcerns(l.to)...)
	}
	for _, t := range measured {
		if p, is := t.Places.(targets.Privileged); is && p.Privileges() != "" {
			list = append(list, concern(t.Name, p.Privileges()))
		}
	}
	return unique(list)
}

// maxNamed is the number of cases that a concern names.
const maxNamed = 3

// disturbances returns the concerns about load that may disturb other users, grouped by place and reason.
func disturbances(loads []load) []plan.Concern {
	names := map[plan.Concern][]string{} // of cases, by place and reason
	var order []plan.Concern
	for _, l := range loads {
		of := concern(l.on, l.disturbs)
		if l.disturbs == "" || slices.Contains(names[of], l.name) {
			continue
		}
		if names[of] == nil {
			order = append(order, of)
		}
		names[of] = append(names[of], l.name)
	}
	var list []plan.Concern
	for _, of := range order {
		what := names[of]
		if more := len(what) - maxNamed; more > 1 {
			what = append(what[:maxNamed:maxNamed], fmt.Sprintf("%d more cases", more))
		}
		list = append(list, concern(prose.Enumerate(what)+" on "+of.What, of.Why+", and other users may feel it"))
	}
	return list
}

// A load is the load that a case puts on a target or a server.
type load struct {
	name     string           // of the case
	disturbs string           // how it may disturb other users; empty if it does not, or if there are none
	on       string           // a target, or a URL
	to       host.Destination // of requests; zero if there are none
}

// workloads returns the workloads of an experiment's cases. It skips invalid cases, which the runner reports.
func workloads(e result.Experiment) []family.Workload {
	var list []family.Workload
	for _, c := range e.Cases {
		if known, err := registry.Families().Parse(c.Name, c.Definition); err == nil {
			list = append(list, known.Workload)
		}
	}
	return list
}

// loads lists the loads of an experiment on shared targets and on servers that the experiment does not deploy.
func loads(e result.Experiment, measured []runner.Target) []load {
	times := family.TimesOf(e.Design)
	var list []load
	for _, w := range workloads(e) {
		l := load{name: w.String()}
		if d, is := w.(family.Disturbing); is {
			l.disturbs = d.Disturbs(times)
		}
		for _, to := range requestDestinations(w, measured) {
			l.on, l.to = to.URL, to
			list = append(list, l)
		}
		l.to = host.Destination{}
		of, _ := e.Case(l.name)
		for _, t := range measured {
			if l.on = t.Name; isShared(t) && e.Measures(of, t.Name) && loadsTarget(t, w) {
				list = append(list, l)
			}
		}
	}
	return list
}

// requestDestinations returns the servers to which a workload sends requests, except those that targets deploy.
func requestDestinations(w family.Workload, measured []runner.Target) []host.Destination {
	if name := w.Traits().Needs.Application; name != "" {
		return applications(name, measured)
	}
	if r, is := w.(family.Sender); is && r.Sends().To.URL != "" {
		return []host.Destination{r.Sends().To}
	}
	return nil
}

// isShared reports whether a target has other users, who may be disturbed by measurements.
func isShared(t runner.Target) bool {
	l, is := t.Places.(targets.Located)
	if !is {
		return false
	}
	_, others, _ := l.Where() // announceTargets reports the error
	return others
}

// loadsTarget reports whether a workload puts load on the target itself. If not, the target only runs the client of an
// application elsewhere.
func loadsTarget(t runner.Target, w family.Workload) bool {
	if name := w.Traits().Needs.Application; name != "" {
		return t.Spec.Deploys(name)
	}
	return len(requestDestinations(w, nil)) == 0
}

// everyApplication stands for all names in [applications].
const everyApplication = ""

// applications lists the destinations of the applications that targets use but do not deploy, by name.
func applications(name string, measured []runner.Target) []host.Destination {
	var list []host.Destination
	for _, t := range measured {
		c, is := t.Places.(targets.Caller)
		if !is {
			continue
		}
		of := c.Applications()
		for _, key := range slices.Sorted(maps.Keys(of)) {
			if name == everyApplication || name == key {
				list = append(list, of[key])
			}
		}
	}
	return list
}

// destinationConcerns lists the concerns that need consent before anything is sent to a destination.
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

// destinations lists the servers to which an experiment sends requests, except API servers.
func destinations(e result.Experiment, measured []runner.Target) []host.Destination {
	var list []host.Destination
	for _, l := range loads(e, measured) {
		if l.to.URL != "" {
			list = append(list, l.to)
		}
	}
	return list
}

// announceTargets prints the clusters of remote targets before it connects to them.
func announceTargets(w io.Writer, measured []runner.Target) error {
	for _, t := range measured {
		l, is := t.Places.(targets.Located)
		if !is {
			continue
		}
		words, _, err := l.Where()
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		fmt.Fprintf(w, "Cluster of %s: %s\n", t.Name, words)
	}
	return nil
}

// announce prints the destinations of requests before the first is sent.
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

// unique returns the list without repeated values, in the order of the first ones.
func unique[T comparable](list []T) []T {
	var kept []T
	for _, v := range list {
		if !slices.Contains(kept, v) {
			kept = append(kept, v)
		}
	}
	return kept
}
