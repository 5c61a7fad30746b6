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

// concern is something that needs consent, and why.
func concern(what, why string) plan.Concern { return plan.Concern{What: what, Why: why} }

// consent asks the one question about all concerns, unless yes, which an agreement sets. Where nobody can be asked it
// is an error that lists them.
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
	go func() { // which nothing but an answer ends
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

// concerns lists what of an experiment needs consent. Targets only state where requests would go; none is sent.
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

// mostNamed is how many cases a concern names.
const mostNamed = 3

// disturbances are what others may feel, once for all cases of which the same is to be said at the same place.
func disturbances(loads []load) []plan.Concern {
	names := map[plan.Concern][]string{} // by where, and why
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
		if more := len(what) - mostNamed; more > 1 {
			what = append(what[:mostNamed:mostNamed], fmt.Sprintf("%d more cases", more))
		}
		list = append(list, concern(prose.Enumerate(what)+" on "+of.What, of.Why+", and other users may feel it"))
	}
	return list
}

// A load is what a case asks or moves at a place.
type load struct {
	name     string
	disturbs string // other users; empty: not, or there are none
	on       string // a target, or a URL
	to       host.Destination
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

// loads lists the load of an experiment on the targets that others may use, and on applications that were there before.
func loads(e result.Experiment, measured []runner.Target) []load {
	times := family.TimesOf(e.Design)
	var list []load
	for _, w := range workloads(e) {
		l := load{name: w.String()}
		if d, is := w.(family.Disturbing); is {
			l.disturbs = d.Disturbs(times)
		}
		for _, to := range asked(w, measured) {
			l.on, l.to = to.URL, to
			list = append(list, l)
		}
		l.to = host.Destination{}
		of, _ := e.Case(l.name)
		for _, t := range measured {
			if l.on = t.Name; shared(t) && e.Measures(of, t.Name) && carries(t, w) {
				list = append(list, l)
			}
		}
	}
	return list
}

// asked is where the requests of a workload go, other than to what targets have themselves.
func asked(w family.Workload, measured []runner.Target) []host.Destination {
	if name := w.Traits().Needs.Application; name != "" {
		return applications(name, measured)
	}
	if r, is := w.(family.Request); is && r.Sends().To.URL != "" {
		return []host.Destination{r.Sends().To}
	}
	return nil
}

// shared reports whether users of other machines may feel what is measured on a target.
func shared(t runner.Target) bool {
	l, is := t.Places.(targets.Located)
	if !is {
		return false
	}
	_, others, _ := l.Where() // what is wrong is reported before it is reached
	return others
}

// carries reports whether the load of a workload is on a target itself: not that on an application elsewhere, whose
// client alone the target has.
func carries(t runner.Target, w family.Workload) bool {
	if name := w.Traits().Needs.Application; name != "" {
		spec, err := targets.ParseSpec(t.Spec)
		return err == nil && spec.Deploys(name)
	}
	return len(asked(w, nil)) == 0
}

// applications lists where those are that targets ask and have not deployed: the one of a name, or without all of them.
func applications(name string, measured []runner.Target) []host.Destination {
	var list []host.Destination
	for _, t := range measured {
		c, is := t.Places.(targets.Caller)
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
func destinations(e result.Experiment, measured []runner.Target) []host.Destination {
	var list []host.Destination
	for _, l := range loads(e, measured) {
		if l.to.URL != "" {
			list = append(list, l.to)
		}
	}
	return list
}

// announceTargets writes what is reached for targets that are elsewhere, before it is.
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
