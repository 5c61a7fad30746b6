package lab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
)

// An Op is one step of a plan, with a text and an effect.
type Op struct {
	// Text is the op as a line of the plan, without the namespace: "link add br0 type bridge".
	Text string
	// Apply carries out the op. The holder calls it on a locked thread in the step's namespace, so that sockets, devices
	// and /proc/sys/net are that namespace's. The holder adds the namespace and the op's text to the error.
	Apply func(e *Env) error
	// Feature names what the op needs and not every kernel has, such as "vxlan"; empty: nothing. Equal names are probed
	// once.
	Feature string
	// Probe tries the feature in a scratch namespace that is removed afterwards. It returns nil if the kernel has it, and
	// an error that Is result.ErrNotSupported and names it if not. With any other error the answer is unknown.
	Probe func(e *Env) error
}

// A Step is an op and the namespace in which it is applied.
type Step struct {
	Namespace string
	Op
}

// A Plan lists the steps that build a site, in order. Equal topologies give equal plans.
type Plan struct {
	Namespaces []string
	Steps      []Step
	PodMTU     int // bytes
	// Tunnel is the device in every node through which the datapath's packets between nodes go; empty: the uplink.
	Tunnel string
	// HasTunnelAddrs reports that nodes have their addresses for pods on the tunnel's devices.
	HasTunnelAddrs bool
	// Needs are features that single paths need in addition to those of the steps.
	Needs map[result.Path][]Op
}

// NodeAddr returns the address at which pods and a node reach each other. With a tunnel it is that of the tunnel's
// device, as in flannel and Calico, so that routes alone lead the packets of both directions into the tunnel. Routing
// rules by source would do so for the address on the underlay, but each packet of the node would pay for their lookup.
func (p Plan) NodeAddr(n int) Dual {
	if p.HasTunnelAddrs {
		return TunnelAddr(n)
	}
	return NodeAddr(n)
}

// Need adds a feature that one path needs. If it is missing, only that path is not supported.
func (p *Plan) Need(path result.Path, op Op) {
	if p.Needs == nil {
		p.Needs = map[result.Path][]Op{}
	}
	p.Needs[path] = append(p.Needs[path], op)
}

// Namespace adds a namespace.
func (p *Plan) Namespace(name string) { p.Namespaces = append(p.Namespaces, name) }

// Add adds steps in one namespace.
func (p *Plan) Add(namespace string, ops ...Op) {
	for _, op := range ops {
		p.Steps = append(p.Steps, Step{namespace, op})
	}
}

// A Service is the address of a Service and that of its only endpoint, both with port ServicePort.
type Service struct{ Addr, Endpoint Dual }

// Services returns the Services of the pods that the plan has so far.
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

// String returns the plan as text: a line for each namespace, then one for each step.
func (p Plan) String() string {
	var b strings.Builder
	for _, name := range p.Namespaces {
		fmt.Fprintf(&b, "%s: namespace\n", name)
	}
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "%s: %s\n", s.Namespace, s.Text)
	}
	return b.String()
}

// probes returns the ops of a plan to probe for a path, one per feature: first those of the path, then those of the
// steps.
func (p Plan) probes(path result.Path) []Op {
	all := slices.Clone(p.Needs[path])
	for _, s := range p.Steps {
		all = append(all, s.Op)
	}
	seen := map[string]bool{"": true}
	return slices.DeleteFunc(all, func(op Op) bool {
		known := seen[op.Feature]
		seen[op.Feature] = true
		return known
	})
}
