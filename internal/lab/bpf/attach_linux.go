package bpf

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/result"
)

// Reasons why eBPF programs are not supported.
const (
	notAllowed = result.NotSupported(
		"eBPF is not allowed here: it needs root (CAP_BPF and CAP_NET_ADMIN) outside of a user namespace")
	noTCX = result.NotSupported(
		"this kernel has no eBPF at the traffic control hooks (tcx, CONFIG_NET_XGRESS, since Linux 6.6)")
	noCgroup = result.NotSupported("this kernel has no eBPF at connect (CONFIG_CGROUP_BPF, links since Linux 5.8)")
	noBPF    = result.NotSupported("this kernel has no eBPF (CONFIG_BPF_SYSCALL)")
)

// maxSockets is the size of the reverse map in sockets. The least recently used ones are removed.
const maxSockets = 1 << 16

// An Attachment is a set of attached programs. It is safe for concurrent use. The kernel detaches the programs at the
// latest when the process ends.
type Attachment struct {
	links    []io.Closer
	maps     []io.Closer
	counters *ebpf.Map // of a tunnel; nil: the programs are for Services
}

// Close detaches the programs.
func (a *Attachment) Close() error {
	var errs []error
	for _, c := range append(a.links, a.maps...) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Counters returns what the tunnel has carried since it was attached.
func (a *Attachment) Counters() (Counters, error) {
	var c Counters
	if a.counters == nil {
		return c, errors.New("these eBPF programs are not a tunnel's and count nothing")
	}
	if err := a.counters.Lookup(uint32(0), &c); err != nil {
		return c, fmt.Errorf("reading the counters of the eBPF tunnel: %w", err)
	}
	return c, nil
}

// AttachTunnel attaches the programs of t to the network interface with the index uplink, in the network namespace of
// the calling thread. The error Is result.ErrNotSupported if the kernel lacks a feature.
func AttachTunnel(t Tunnel, uplink int) (*Attachment, error) {
	if err := t.validate(); err != nil {
		return nil, err
	}
	counters, err := newMap(&ebpf.MapSpec{Name: "km_" + countersMap,
		Type: ebpf.Array, KeySize: 4, ValueSize: 40, MaxEntries: 1})
	if err != nil {
		return nil, err
	}
	a := &Attachment{maps: []io.Closer{counters}, counters: counters}
	maps := map[string]*ebpf.Map{countersMap: counters}
	for _, side := range []struct {
		name   string
		insns  asm.Instructions
		attach ebpf.AttachType
	}{
		{"km_ipip_decap", t.decap(), ebpf.AttachTCXIngress},
		{"km_ipip_encap", t.encap(), ebpf.AttachTCXEgress},
	} {
		p, err := load(&ebpf.ProgramSpec{Name: side.name, Type: ebpf.SchedCLS, Instructions: side.insns}, maps)
		if err != nil {
			return nil, errors.Join(err, a.Close())
		}
		l, err := link.AttachTCX(link.TCXOptions{Interface: uplink, Program: p, Attach: side.attach})
		if l != nil {
			a.links = append(a.links, l)
		}
		err = missing(fmt.Sprintf("attaching %s to network interface %d", side.name, uplink), err, noTCX)
		if err := errors.Join(err, p.Close()); err != nil {
			return nil, errors.Join(err, a.Close())
		}
	}
	return a, nil
}

// attachServices translates the addresses that processes in a cgroup dial: a Service's address becomes its endpoint's
// when a socket connects or sends a datagram, and the endpoint's becomes the Service's when the process asks for its
// peer. It applies to sockets opened in the cgroup afterwards. dir is a directory of cgroup v2. The error Is
// result.ErrNotSupported if the kernel lacks a feature.
func attachServices(dir string, services []Service) (*Attachment, error) {
	forward, err := newMap(&ebpf.MapSpec{Name: "km_" + servicesMap, Type: ebpf.Hash,
		KeySize: entryLen, ValueSize: entryLen, MaxEntries: uint32(max(1, len(services)*len(protocols)))})
	if err != nil {
		return nil, err
	}
	reverse, err := newMap(&ebpf.MapSpec{Name: "km_" + reverseMap, Type: ebpf.LRUHash,
		KeySize: 8 + entryLen, ValueSize: entryLen, MaxEntries: maxSockets})
	if err != nil {
		return nil, errors.Join(err, forward.Close())
	}
	a := &Attachment{maps: []io.Closer{forward, reverse}}
	maps := map[string]*ebpf.Map{servicesMap: forward, reverseMap: reverse}
	for _, s := range services {
		if s.Addr.Addr().Is4() != s.Endpoint.Addr().Is4() {
			err := fmt.Errorf("service %v and its endpoint %v are of different IP versions", s.Addr, s.Endpoint)
			return nil, errors.Join(err, a.Close())
		}
		for _, protocol := range protocols {
			if err := forward.Put(entry(s.Addr, protocol), entry(s.Endpoint, 0)); err != nil {
				return nil, errors.Join(fmt.Errorf("noting service %v: %w", s.Addr, err), a.Close())
			}
		}
	}
	for _, h := range hooks {
		if err := a.attachHook(h, dir, maps); err != nil {
			return nil, errors.Join(err, a.Close())
		}
	}
	return a, nil
}

func (a *Attachment) attachHook(h hook, dir string, maps map[string]*ebpf.Map) error {
	p, err := load(&ebpf.ProgramSpec{Name: "km_" + h.name, Type: ebpf.CGroupSockAddr,
		AttachType: h.attach, Instructions: h.program()}, maps)
	if err != nil {
		return err
	}
	l, err := link.AttachCgroup(link.CgroupOptions{Path: dir, Attach: h.attach, Program: p})
	if l != nil {
		a.links = append(a.links, l)
	}
	return errors.Join(missing(fmt.Sprintf("attaching %s to control group %s", h.name, dir), err, noCgroup), p.Close())
}

func newMap(spec *ebpf.MapSpec) (*ebpf.Map, error) {
	m, err := ebpf.NewMap(spec)
	if errors.Is(err, unix.EPERM) {
		// Before Linux 5.11 maps count as locked memory, whose limit root may raise.
		limit := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
		if unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit) == nil {
			m, err = ebpf.NewMap(spec)
		}
	}
	return m, missing("making the eBPF map "+spec.Name, err, noBPF)
}

// load connects a program's instructions with the maps that they refer to, and loads it.
func load(spec *ebpf.ProgramSpec, maps map[string]*ebpf.Map) (*ebpf.Program, error) {
	for name, m := range maps {
		err := spec.Instructions.AssociateMap(name, m)
		if err != nil && !errors.Is(err, asm.ErrUnreferencedSymbol) {
			return nil, fmt.Errorf("eBPF program %s: %w", spec.Name, err)
		}
	}
	spec.License = "Apache-2.0"
	p, err := ebpf.NewProgram(spec)
	return p, missing("loading the eBPF program "+spec.Name, err, noBPF)
}

// missing turns the kernel's errors for a missing permission or feature into NotSupported errors, and wraps others.
func missing(doing string, err error, feature result.NotSupported) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EPERM), errors.Is(err, fs.ErrPermission):
		return notAllowed
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.ENOSYS):
		return feature
	}
	return fmt.Errorf("%s: %w", doing, err)
}
