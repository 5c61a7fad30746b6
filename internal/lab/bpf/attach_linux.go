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

// What a kernel may lack, as it is told to the reader.
const (
	notAllowed = result.NotSupported(
		"eBPF is not allowed here: it needs root (CAP_BPF and CAP_NET_ADMIN) outside of a user namespace")
	noTCX = result.NotSupported(
		"this kernel has no eBPF at the traffic control hooks (tcx, CONFIG_NET_XGRESS, since Linux 6.6)")
	noCgroup = result.NotSupported("this kernel has no eBPF at connect (CONFIG_CGROUP_BPF, links since Linux 5.8)")
	noBPF    = result.NotSupported("this kernel has no eBPF (CONFIG_BPF_SYSCALL)")
)

// maxSockets is how many sockets the reverse map remembers; the least recently used are forgotten.
const maxSockets = 1 << 16

// An Attachment is programs at work. It is safe for concurrent use, and ends at the latest with the process.
type Attachment struct {
	links    []io.Closer
	maps     []io.Closer
	counters *ebpf.Map // of a tunnel; nil for Services
}

// Close detaches the programs.
func (a *Attachment) Close() error {
	var errs []error
	for _, c := range append(a.links, a.maps...) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Counters are what the tunnel has carried since it was attached.
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

// AttachTunnel attaches the programs of t to the network interface with the index, in the network
// namespace of the calling thread. The error Is result.ErrNotSupported where the kernel cannot.
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

// attachServices translates what the processes in a cgroup dial: a Service's address becomes its
// endpoint's as a socket connects or sends a datagram, and the other way round where the process
// asks whom it talks to. It is for sockets opened in the cgroup afterwards. dir is a directory of cgroup v2. The error
// Is result.ErrNotSupported where the kernel cannot.
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
		if err := a.hook(h, dir, maps); err != nil {
			return nil, errors.Join(err, a.Close())
		}
	}
	return a, nil
}

func (a *Attachment) hook(h hook, dir string, maps map[string]*ebpf.Map) error {
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
		// Before Linux 5.11 maps count as locked memory, of which root may allow itself more.
		limit := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
		if unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit) == nil {
			m, err = ebpf.NewMap(spec)
		}
	}
	return m, missing("making the eBPF map "+spec.Name, err, noBPF)
}

// load loads a program, after giving its instructions the maps that they name.
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

// missing turns the kernel's answers for lack of a right or a feature into the reason, and wraps other errors.
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
