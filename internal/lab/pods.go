//go:build linux

package lab

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/lab/netns"
)

// Plan returns the plan of a site: the datapath's, then that of the Services, then the setup of the pods.
func (k Kit) Plan(datapath string, t Topology) (Plan, error) {
	if err := t.Validate(); err != nil {
		return Plan{}, err
	}
	d, err := k.Datapath(datapath)
	if err != nil {
		return Plan{}, err
	}
	s, err := findByName(k.Services, func(s Services) string { return s.Name }, t.Services, "services=%s is not one of %s")
	if err != nil {
		return Plan{}, err
	}
	plan, err := d.Plan(t)
	if err != nil {
		return Plan{}, fmt.Errorf("plan of %s: %w", datapath, err)
	}
	s.Extend(&plan, t)
	return plan, plan.addPodSteps(t.Pods)
}

// addPodSteps adds the settings of all pods.
func (p *Plan) addPodSteps(pods Pods) error {
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
		steps = append(steps, Op{Text: fmt.Sprintf("link set %s mtu %d", Uplink, o.MTU),
			Apply: func(e *Env) error { return e.Netlink().Set(Uplink, o.MTU, nil) }})
	}
	if o.OffloadsOff {
		steps = append(steps, Op{Text: "ethtool -K " + Uplink + " tx off tso off gso off gro off",
			Apply: func(*Env) error { return netns.SwitchOff(Uplink) }})
	}
	if o.Congestion != "" {
		steps = append(steps, congestionControl(o.Congestion))
	}
	if o.Buffer > 0 {
		steps = append(steps, Sysctl("net.ipv4.tcp_rmem", o.bufferSizes()), Sysctl("net.ipv4.tcp_wmem", o.bufferSizes()))
	}
	if o.Backlog > 0 {
		steps = append(steps, Sysctl("net.core.somaxconn", strconv.Itoa(o.Backlog)))
	}
	return steps
}

// bufferSizes returns the minimum, default and maximum buffer size in the format of tcp_rmem and tcp_wmem.
func (o Pods) bufferSizes() string {
	return fmt.Sprintf("%d %d %[2]d", min(MinBuffer, o.Buffer), o.Buffer)
}
