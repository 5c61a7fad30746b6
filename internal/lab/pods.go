//go:build linux

package lab

import (
	"cmp"
	"fmt"
	"strconv"
)

// Plan is the whole plan of a site: the datapath's, then the Services'.
func (k Kit) Plan(datapath string, t Topology) (Plan, error) {
	if err := t.Validate(); err != nil {
		return Plan{}, err
	}
	d, err := k.Datapath(datapath)
	if err != nil {
		return Plan{}, err
	}
	s, err := named(k.Services, t.Services, "services=%s is not one of %s")
	if err != nil {
		return Plan{}, err
	}
	plan, err := d.Plan(t)
	if err != nil {
		return Plan{}, fmt.Errorf("plan of %s: %w", datapath, err)
	}
	s.Extend(&plan, t)
	return plan, plan.setUp(t.Pods)
}

// setUp adds what pods are to have besides.
func (p *Plan) setUp(pods Pods) error {
	if pods.MTU > p.PodMTU {
		return fmt.Errorf("pod-mtu=%d is more than the %d bytes that the datapath leaves", pods.MTU, p.PodMTU)
	}
	p.PodMTU = cmp.Or(pods.MTU, p.PodMTU)
	for _, name := range p.Namespaces {
		if NodeOf(name) != "" {
			p.Add(name, pods.steps()...)
		}
	}
	return nil
}

func (o Pods) steps() []Op {
	var steps []Op
	if o.MTU > 0 {
		steps = append(steps, setMTU(Uplink, o.MTU))
	}
	if o.Plain {
		steps = append(steps, withoutOffloads(Uplink))
	}
	if o.Congestion != "" {
		steps = append(steps, congestion(o.Congestion))
	}
	if o.Buffer > 0 {
		steps = append(steps, Sysctl("net.ipv4.tcp_rmem", o.buffer()), Sysctl("net.ipv4.tcp_wmem", o.buffer()))
	}
	if o.Backlog > 0 {
		steps = append(steps, Sysctl("net.core.somaxconn", strconv.Itoa(o.Backlog)))
	}
	return steps
}

// buffer is the least, the first and the largest size of a buffer, as the kernel's settings have it.
func (o Pods) buffer() string { return fmt.Sprintf("%d %d %[2]d", min(MinBuffer, o.Buffer), o.Buffer) }
