package lab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/targets"
)

// An Op is one step of a plan: data, with a text and an effect.
type Op interface {
	// String is the op as a line of the plan, without the namespace: "link add br0 type bridge".
	String() string
	// Apply does it. The holder calls it on a locked thread that is inside the step's namespace, so sockets,
	// devices and /proc/sys/net are that namespace's. The error says why only; the holder adds the rest.
	Apply(e *Env) error
}

// A Prober is an Op that needs something of the kernel that not every kernel has.
type Prober interface {
	Op
	// Feature names what is probed; equal names are probed once: "vxlan".
	Feature() string
	// Probe tries it in a scratch namespace that is thrown away afterwards. It has three answers: nil is yes, an
	// error that Is result.ErrNotSupported is no and names the feature, any other error is "could not tell".
	Probe(e *Env) error
}

// A Step is an op and where it is done.
type Step struct {
	Namespace string
	Op        Op
}

// A Plan is how a site is built, in order. Equal topologies give equal plans.
type Plan struct {
	Namespaces []string
	Steps      []Step
	PodMTU     int // bytes
	// Tunnel is the device in every node that the datapath's packets between nodes go through, if that is not the uplink.
	Tunnel string
	// Needs is what single paths need of the kernel beyond the steps.
	Needs map[targets.Path][]Prober
}

// Need says that a path needs something that the others do not; without it, only that path is not supported.
func (p *Plan) Need(path targets.Path, op Prober) {
	if p.Needs == nil {
		p.Needs = map[targets.Path][]Prober{}
	}
	same := func(o Prober) bool { return o.Feature() == op.Feature() }
	if !slices.ContainsFunc(p.Needs[path], same) {
		p.Needs[path] = append(p.Needs[path], op)
	}
}

// Namespace adds a namespace.
func (p *Plan) Namespace(name string) { p.Namespaces = append(p.Namespaces, name) }

// Add adds steps in one namespace.
func (p *Plan) Add(namespace string, ops ...Op) {
	for _, op := range ops {
		p.Steps = append(p.Steps, Step{namespace, op})
	}
}

// A Service is an address, and that of its only endpoint, both at ServicePort.
type Service struct{ Addr, Endpoint Dual }

// Services are those of the pods that the plan has so far.
func (p Plan) Services(t Topology) []Service {
	var services []Service
	for n := range t.EachNode() {
		for m := 1; m <= PodsPerNode; m++ {
			if slices.Contains(p.Namespaces, Pod(n, m)) {
				services = append(services, Service{ServiceAddr(n, m), PodAddr(n, m)})
			}
		}
	}
	return services
}

// String is the plan as text: one line per namespace, then one per step.
func (p Plan) String() string {
	var b strings.Builder
	for _, name := range p.Namespaces {
		fmt.Fprintf(&b, "%s: namespace\n", name)
	}
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "%s: %s\n", s.Namespace, s.Op)
	}
	return b.String()
}

// probers returns the probes of a plan for a path, one per feature, in order: those of all steps that every path needs,
// and the path's own.
func (p Plan) probers(path targets.Path) []Prober {
	var probers []Prober
	seen := map[string]bool{}
	for of, ops := range p.Needs {
		for _, op := range ops {
			seen[op.Feature()] = true
			if of == path {
				probers = append(probers, op)
			}
		}
	}
	for _, s := range p.Steps {
		if op, ok := s.Op.(Prober); ok && !seen[op.Feature()] {
			seen[op.Feature()] = true
			probers = append(probers, op)
		}
	}
	return probers
}
