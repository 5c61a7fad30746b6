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

// A watched target is one whose nodes are read before and after the client's part of each run.
type watched struct {
	targets.Target
	cluster cluster
	last    *sighting
}

// A sighting is what the nodes of a site counted during a run.
type sighting struct {
	dial, listen   netip.Addr // what the client connects to, and the server's own address
	client, server string     // nodes
	atClient       reading
	atServer       reading
	attached       map[netip.Addr]traffic // what the pods' devices of macvlan counted, by their addresses
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

// A watchedClient is the client of a run, which sends nothing before its command begins and after it ends.
type watchedClient struct {
	host.Host
	watched *watched
	pair    host.Pair
}

func (c *watchedClient) Run(ctx context.Context, command host.Cmd) error {
	w := c.watched
	seen := &sighting{dial: c.pair.Dial.Addr(), listen: c.pair.Listen.Addr(), client: node(c.pair.Client.Name()),
		server: node(c.pair.Server.Name())}
	before, err := w.both(*seen)
	linksBefore, linksErr := w.cluster.attached()
	if err := errors.Join(err, linksErr); err != nil {
		return err
	}
	ended := c.Host.Run(ctx, command)
	after, err := w.both(*seen)
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

// node is the node of a host, whose name begins with it.
func node(host string) string {
	name, _, _ := strings.Cut(host, "/")
	return name
}

// both reads the nodes of the client and of the server.
func (w *watched) both(s sighting) (r [2]reading, err error) {
	var errs [2]error
	var reads sync.WaitGroup
	for i, name := range []string{s.client, s.server} {
		reads.Go(func() { r[i], errs[i] = w.cluster.read(name) })
	}
	reads.Wait()
	return r, errors.Join(errs[0], errs[1])
}

// take returns what was seen of the last run.
func (w *watched) take() *sighting {
	s := w.last
	w.last = nil
	return s
}

// A recorder is a sink that keeps, next to each run on the cluster, what the nodes counted meanwhile.
type recorder struct {
	*store.Writer
	watched map[string]*watched  // by target
	seen    map[string]*sighting // by run
}

func (r *recorder) Append(run result.Run, raw []result.File) error {
	if w := r.watched[run.Target]; w != nil {
		r.seen[run.ID] = w.take()
	}
	return r.Writer.Append(run, raw)
}
