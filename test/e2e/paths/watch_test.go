//go:build linux

package paths

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/store"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// A watched target reads the counters of its nodes before and after the client's command of each run.
type watched struct {
	targets.Target
	cluster cluster
	last    *observation
}

// An observation holds what the nodes of a site counted during a run.
type observation struct {
	dial, listen   netip.Addr // the address that the client dials, and the server's own
	client, server string     // names of their nodes
	atClient       reading
	atServer       reading
	attached       map[netip.Addr]traffic // counters of the pods' macvlan devices, by address
}

func (w *watched) Open(ctx context.Context, placements []targets.Placement) (targets.Site, error) {
	site, err := w.Target.Open(ctx, placements)
	for i := range site.Places {
		if p := &site.Places[i]; p.Err == nil {
			p.Client = &watchedClient{p.Client, w, p.Pair}
		}
	}
	return site, err
}

// A watchedClient reads the nodes around each command of the client, which sends nothing before and after it.
type watchedClient struct {
	host.Host
	watched *watched
	pair    host.Pair
}

func (c *watchedClient) Run(ctx context.Context, command host.Cmd) error {
	w := c.watched
	seen := &observation{dial: c.pair.Dial.Addr(), listen: c.pair.Listen.Addr(), client: node(c.pair.Client.Name()),
		server: node(c.pair.Server.Name())}
	before, err := w.readBoth(*seen)
	linksBefore, linksErr := w.cluster.attached()
	if err := errors.Join(err, linksErr); err != nil {
		return err
	}
	ended := c.Host.Run(ctx, command)
	after, err := w.readBoth(*seen)
	links, linksErr := w.cluster.attached()
	if err = errors.Join(err, linksErr); err == nil {
		seen.atClient, seen.atServer = after[0].minus(before[0]), after[1].minus(before[1])
		seen.attached = map[netip.Addr]traffic{}
		for address, counted := range links {
			seen.attached[address] = counted.minus(linksBefore[address])
		}
		w.last = seen
	}
	return errors.Join(ended, err)
}

// node returns the node of a host, with which the host's name begins.
func node(host string) string {
	name, _, _ := strings.Cut(host, "/")
	return name
}

// readBoth reads the nodes of the client and of the server, at the same time.
func (w *watched) readBoth(s observation) (r [2]reading, err error) {
	var errs [2]error
	var reads sync.WaitGroup
	for i, name := range []string{s.client, s.server} {
		reads.Go(func() { r[i], errs[i] = w.cluster.read(name) })
	}
	reads.Wait()
	return r, errors.Join(errs[0], errs[1])
}

// take returns the observation of the last run, once.
func (w *watched) take() *observation {
	s := w.last
	w.last = nil
	return s
}

// A recorder is a sink that keeps the observation of each run on a watched target.
type recorder struct {
	*store.Writer
	watched  map[string]*watched     // by target
	observed map[string]*observation // by run
}

func (r *recorder) Append(run result.Run, raw []result.File) error {
	if w := r.watched[run.Target]; w != nil {
		r.observed[run.ID] = w.take()
	}
	return r.Writer.Append(run, raw)
}
