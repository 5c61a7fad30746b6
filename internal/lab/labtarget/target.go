//go:build linux

package labtarget

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/local"
)

// New parses the text of a lab target. It starts nothing. Every error of the text Is result.ErrSpec.
func New(spec result.Spec, config lab.Config) (targets.Target, error) {
	options, err := parse(spec)
	if err != nil {
		return nil, err
	}
	datapath, err := config.Kit.Datapath(spec.Name)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", result.ErrSpec, spec.Text, err)
	}
	plan, err := config.Kit.Plan(spec.Name, options.Topology)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", result.ErrSpec, spec.Text, err)
	}
	client, server, err := splitCPUs()
	if err != nil {
		return nil, err
	}
	if options.oneCPU {
		client = client[:1]
		server = client
	}
	here, err := local.New(result.Spec{Kind: "local", Text: "local:"}, config.Agent...)
	if err != nil {
		return nil, err
	}
	var storage targets.Target
	if options.dir != "" {
		if storage, err = local.Directory(options.dir); err != nil {
			return nil, fmt.Errorf("%s: option dir: %w", spec.Text, err)
		}
	}
	return &labTarget{
		storage: storage, machine: here, config: config, datapath: datapath, topology: options.Topology, podMTU: plan.PodMTU,
		clientCPUs: client, serverCPUs: server, probed: map[result.Path]error{},
	}, nil
}

// A labTarget is a datapath with options. Its holder starts when it is first needed.
type labTarget struct {
	config                 lab.Config
	datapath               lab.Datapath
	topology               lab.Topology
	podMTU                 int
	clientCPUs, serverCPUs []int
	lab                    *lab.Lab
	probed                 map[result.Path]error // paths that were probed: nil, or why one is not supported
	storage                targets.Target        // the directory of the option dir; nil: none
	machine                targets.Target        // this one, for cases about it
	claim                  *targets.MachineClaim
}

// start starts the holder, unless it is running.
func (l *labTarget) start() (err error) {
	if l.lab == nil {
		l.lab, err = lab.Start(l.config)
	}
	return err
}

// Begin claims the machine and starts the holder, if network cases are planned.
func (l *labTarget) Begin(ctx context.Context, p targets.Plan) (warnings []string, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if l.storage != nil {
		if warnings, err = l.storage.Begin(ctx, p); err != nil {
			return nil, err
		}
	}
	about := func(is func(targets.Placement) bool) bool { return slices.ContainsFunc(p.Placements, is) }
	paths := about(func(p targets.Placement) bool { return p.Path != "" })
	if !paths && !about(func(p targets.Placement) bool { return p.Machine }) {
		return warnings, nil
	}
	if l.claim, warnings, err = targets.ClaimMachine(ctx, p); err != nil || !paths {
		return warnings, err
	}
	if err := l.start(); err != nil {
		return nil, fmt.Errorf("the lab cannot be opened: %w; 'knotmeter doctor' says what it needs", err)
	}
	if c, is := l.datapath.(lab.Cautioner); is && c.Caution() != "" {
		warnings = append(warnings, c.Caution())
	}
	return warnings, nil
}

// Shares returns the machine, which all labs on it share.
func (l *labTarget) Shares(context.Context) ([]string, error) {
	id, err := machine.BootID()
	return []string{"the machine with boot ID " + id}, err
}

// Underlay identifies this machine, and the options on which a node-to-node path depends.
func (l *labTarget) Underlay() string {
	o := l.topology
	delay := "none"
	if o.Delay != nil {
		delay = o.Delay.String()
	}
	return fmt.Sprintf("this machine: nodes=%d mtu=%d rate=%d delay=%s loss=%g ipv6=%t cpus=%v,%v",
		o.Nodes, o.MTU, o.Rate, delay, o.Loss, o.IPv6, l.clientCPUs, l.serverCPUs)
}

// Supports returns nil if the datapath carries the path and the kernel has what it needs. It probes the kernel once per
// path. If the kernel's answer is unknown, the path counts as supported, and Open reports the error.
func (l *labTarget) Supports(p targets.Placement) error {
	if err := p.Check(); err != nil {
		return err
	}
	switch {
	case p.Volume:
		return l.supportsStorage(p)
	case p.Machine:
		return l.machine.Supports(p)
	case p.Path == "":
		return result.NotSupported("a lab is for network paths, and for this machine itself; applications are asked from " +
			"local: or kube: targets, API servers from kube: targets")
	}
	if err := l.datapath.Carries(l.topology, p.Path); err != nil {
		return err
	}
	if p.Datagrams && l.datapath.Wire(p.Path).Proxied {
		return result.NotSupported("the proxies carry TCP only: other packets would bypass them, without encryption")
	}
	if err := local.CheckProgram(p.Program); err != nil {
		return err
	}
	if err, known := l.probed[p.Path]; known {
		return err
	}
	err := l.start()
	if err == nil {
		err = l.lab.Probe(l.datapath.Name(), l.topology, p.Path)
	}
	if err != nil && !errors.Is(err, result.ErrNotSupported) {
		return nil
	}
	l.probed[p.Path] = err
	return err
}

// Environment returns nil: a lab has no variables for the command of a switch.
func (l *labTarget) Environment() []string { return nil }

// Settle forgets the kernel's answers. Unlike other targets, a lab needs no time to become ready.
func (l *labTarget) Settle(context.Context) error {
	clear(l.probed)
	return nil
}

// supportsStorage returns what the target of the option dir reports. Labs only separate networks, so their storage is
// this machine's.
func (l *labTarget) supportsStorage(p targets.Placement) error {
	if l.storage == nil {
		return result.NotSupported("a lab has no disk of its own: " +
			"name a directory of this machine with dir=, or measure it as local:<dir>")
	}
	return l.storage.Supports(p)
}

// Open makes a site of the lab for network cases, one of the directory for storage cases, and one of this machine for
// cases about it: a lab only separates networks, so its CPUs and memory are this machine's.
func (l *labTarget) Open(ctx context.Context, placements []targets.Placement) (targets.Site, error) {
	if err := ctx.Err(); err != nil {
		return targets.Site{}, err
	}
	var opened []targets.Site
	site := targets.Site{Places: make([]targets.Place, len(placements))}
	site.Close = func(ctx context.Context) error {
		var errs []error
		for _, s := range opened {
			errs = append(errs, s.Close(ctx))
		}
		return errors.Join(errs...)
	}
	for _, of := range l.parts(placements, site.Places) {
		s, err := of.open(ctx, of.placements)
		if err != nil {
			return targets.Site{}, errors.Join(err, site.Close(context.WithoutCancel(ctx)))
		}
		opened = append(opened, s)
		for k, i := range of.indexes {
			site.Places[i] = s.Places[k]
		}
	}
	return site, nil
}

// A part of a site is opened and closed separately.
type part struct {
	open       func(context.Context, []targets.Placement) (targets.Site, error)
	placements []targets.Placement
	indexes    []int // of the placements in the whole site
}

// parts groups the supported placements by the part that opens them. Places that are not supported get their error.
func (l *labTarget) parts(placements []targets.Placement, places []targets.Place) []part {
	network, storage, itself := part{open: l.openNetwork}, part{}, part{open: l.machine.Open}
	for i, p := range placements {
		if places[i].Err = l.Supports(p); places[i].Err != nil {
			continue
		}
		of := &network
		switch {
		case p.Volume:
			of, storage.open = &storage, l.storage.Open
		case p.Machine:
			of = &itself
		}
		of.placements, of.indexes = append(of.placements, p), append(of.indexes, i)
	}
	return slices.DeleteFunc([]part{network, storage, itself}, func(of part) bool { return len(of.placements) == 0 })
}

// openNetwork opens a site of the lab. A host in several places has one agent; its CPUs depend on its end of the path
// and are set for each request.
func (l *labTarget) openNetwork(ctx context.Context, placements []targets.Placement) (targets.Site, error) {
	if err := l.start(); err != nil {
		return targets.Site{}, err
	}
	info, err := l.lab.Open(ctx, l.datapath.Name(), l.topology, placements)
	if err != nil {
		return targets.Site{}, err
	}
	pool := agent.NewPool()
	on := func(h lab.Host, cpus []int) host.Host { return pool.On(&siteHost{l.lab, info.ID, h, cpus}) }
	site := targets.Site{Close: func(context.Context) error {
		pool.Close()
		return l.lab.CloseSite(info.ID)
	}}
	for _, p := range info.Places {
		place := targets.Place{Err: p.Err()}
		if place.Err == nil {
			place.Pair = host.Pair{
				Client: on(p.Client, l.clientCPUs), Server: on(p.Server, l.serverCPUs),
				Dial: p.Dial, Listen: p.Listen, Shared: true, MTU: p.MTU,
			}
			place.Facts = p.Facts
		}
		site.Places = append(site.Places, place)
	}
	return site, nil
}

// Close ends the holder, cleans the directory, and releases the machine.
func (l *labTarget) Close() error {
	defer l.claim.Close() // the lock is released with the process at the latest
	var storage, network error
	if l.storage != nil {
		storage = l.storage.Close()
	}
	if l.lab != nil {
		network = l.lab.Close()
	}
	return errors.Join(storage, network, l.machine.Close())
}

// A siteHost is a host of a site.
type siteHost struct {
	lab  *lab.Lab
	site int
	lab.Host
	cpus []int
}

func (h *siteHost) Name() string     { return h.Host.Name }
func (h *siteHost) Addr() netip.Addr { return h.Host.Addr }
func (h *siteHost) CPUs() []int      { return append([]int(nil), h.cpus...) }

func (h *siteHost) Run(ctx context.Context, c host.Cmd) error {
	return h.lab.Run(ctx, h.site, h.Host.Name, c)
}
