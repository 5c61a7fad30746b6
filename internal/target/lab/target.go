//go:build linux

package labtarget

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/claim"
	"github.com/knotmeter/knotmeter/internal/target/local"
)

// New reads the text of a lab target. It starts nothing yet. Every error Is target.ErrSpec.
func New(spec target.Spec, config lab.Config) (target.Target, error) {
	options, err := parse(spec)
	if err != nil {
		return nil, err
	}
	datapath, err := config.Kit.Datapath(spec.Name)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", target.ErrSpec, spec.Text, err)
	}
	plan, err := config.Kit.Plan(spec.Name, options.Topology)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", target.ErrSpec, spec.Text, err)
	}
	client, server, err := halves()
	if err != nil {
		return nil, err
	}
	var storage target.Target
	if options.dir != "" {
		if storage, err = localtarget.Directory(options.dir); err != nil {
			return nil, fmt.Errorf("%s: option dir: %w", spec.Text, err)
		}
	}
	return &labTarget{
		storage: storage, config: config, datapath: datapath, topology: options.Topology, podMTU: plan.PodMTU,
		clientCPUs: client, serverCPUs: server, probed: map[target.Path]error{},
	}, nil
}

// A labTarget is one datapath with its options. The holder is started when it is first needed.
type labTarget struct {
	config                 lab.Config
	datapath               lab.Datapath
	topology               lab.Topology
	podMTU                 int
	clientCPUs, serverCPUs []int
	lab                    *lab.Lab
	probed                 map[target.Path]error // what is not supported
	storage                target.Target         // the directory of the option dir; nil without
	claim                  *claim.Machine
}

// start starts the holder, once.
func (l *labTarget) start() (err error) {
	if l.lab == nil {
		l.lab, err = lab.Start(l.config)
	}
	return err
}

// Begin claims the machine and starts the holder, unless nothing is planned that needs them.
func (l *labTarget) Begin(ctx context.Context, p target.Plan) (warnings []string, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if l.storage != nil {
		if warnings, err = l.storage.Begin(ctx, p); err != nil {
			return nil, err
		}
	}
	if !slices.ContainsFunc(p.Placements, func(p target.Placement) bool { return p.Path.Network() }) {
		return warnings, nil
	}
	if l.claim, warnings, err = claim.OnMachine(ctx, p, claim.Dir()); err != nil {
		return nil, err
	}
	if err := l.start(); err != nil {
		return nil, fmt.Errorf("the lab cannot be opened: %w; 'knotmeter doctor' says what it needs", err)
	}
	return warnings, nil
}

// Shares names the machine: all labs are on this one.
func (l *labTarget) Shares(context.Context) ([]string, error) {
	id, err := machine.BootID()
	return []string{"the machine with boot ID " + id}, err
}

// Supports asks the datapath, then the kernel, in a scratch namespace and once per path. Where the kernel's answer is
// not clear, Open will tell.
func (l *labTarget) Supports(p target.Placement) error {
	if p.Path == target.Storage {
		return l.supportsStorage(p)
	}
	if !slices.Contains(target.Paths(), p.Path) {
		return result.NotSupported(fmt.Sprintf("the lab has no path %q", p.Path))
	}
	if err := l.datapath.Carries(l.topology, p.Path); err != nil {
		return err
	}
	if err := localtarget.Equipped(p.Program); err != nil {
		return err
	}
	if err, no := l.probed[p.Path]; no {
		return err
	}
	err := l.start()
	if err == nil {
		err = l.lab.Probe(l.datapath.Name(), l.topology, p.Path)
	}
	if !errors.Is(err, result.ErrNotSupported) {
		return nil
	}
	l.probed[p.Path] = err
	return err
}

// supportsStorage: a lab is namespaces of the network, so that its storage is this machine's, whatever the datapath.
func (l *labTarget) supportsStorage(p target.Placement) error {
	if l.storage == nil {
		return result.NotSupported("a lab has no disk of its own: " +
			"name a directory of this machine with dir=, or measure it as local:<dir>")
	}
	return l.storage.Supports(p)
}

// Open makes and checks a site.
func (l *labTarget) Open(ctx context.Context, placements []target.Placement) (target.Site, error) {
	return target.Singly(ctx, placements, l.open)
}

func (l *labTarget) open(ctx context.Context, p target.Placement) (target.Single, error) {
	if err := l.Supports(p); err != nil {
		return target.Single{}, err
	}
	if p.Path == target.Storage {
		return target.One(ctx, l.storage, p)
	}
	if err := l.start(); err != nil {
		return target.Single{}, err
	}
	info, err := l.lab.Open(ctx, l.datapath.Name(), l.topology, p)
	if err != nil {
		return target.Single{}, err
	}
	place := target.Place{
		Pair: host.Pair{
			Client: &siteHost{l.lab, info.ID, info.Client, l.clientCPUs},
			Server: &siteHost{l.lab, info.ID, info.Server, l.serverCPUs},
			Dial:   info.Dial, Listen: info.Listen, Shared: true, MTU: info.MTU,
		},
		Facts: info.Facts,
	}
	return target.Single{Place: place, Close: func(context.Context) error { return l.lab.CloseSite(info.ID) }}, nil
}

// Close ends the holder, removes what is on the directory, and gives the machine back.
func (l *labTarget) Close() error {
	defer func() {
		_ = l.claim.Close() // the lock ends with the process at the latest
		l.claim = nil
	}()
	var err error
	if l.storage != nil {
		err = l.storage.Close()
	}
	if l.lab == nil {
		return err
	}
	ended := l.lab
	l.lab = nil
	return errors.Join(err, ended.Close())
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
