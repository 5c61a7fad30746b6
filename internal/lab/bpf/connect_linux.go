package bpf

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/knotmeter/knotmeter/internal/cgroup"
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A Connect translates Services when sockets connect, as Cilium does without kube-proxy. Its programs are attached to
// the site's control group and apply to the site's processes.
type Connect struct{}

// Name returns the value of the option services= that chooses it.
func (Connect) Name() string { return "ebpf" }

// Extend adds the Services of all pods of the plan, for TCP and UDP, IPv4 and IPv6. A plan without pods is not changed.
func (Connect) Extend(p *lab.Plan, t lab.Topology) {
	var op Translate
	for _, s := range p.Services(t) {
		endpoint := s.Endpoint.All()
		for i, addr := range s.Addr.All() {
			op = append(op, Service{netip.AddrPortFrom(addr, lab.ServicePort), netip.AddrPortFrom(endpoint[i], lab.ServicePort)})
		}
	}
	if len(op) > 0 {
		// The programs belong to no namespace; the step uses that of the switch.
		p.Add(lab.Switch, op)
	}
}

// A Translate puts the site's commands into a control group in which the addresses of Services become those of
// endpoints.
type Translate []Service

func (o Translate) String() string {
	pairs := make([]string, len(o))
	for i, s := range o {
		pairs[i] = fmt.Sprintf("%s>%s", s.Addr, s.Endpoint)
	}
	return "cgroup ebpf tcp,udp at connect,sendmsg,recvmsg,getpeername map " + strings.Join(pairs, " ")
}

// Apply makes the group and attaches the programs. Closing the site removes both.
func (o Translate) Apply(e *lab.Env) error {
	group, err := cgroup.New()
	if err != nil {
		return err
	}
	attached, err := attachServices(group.Dir(), o)
	if err != nil {
		return errors.Join(err, group.Close())
	}
	e.UseGroup(group)
	e.OnClose(func() error { return errors.Join(attached.Close(), group.Close()) })
	e.Fact(result.Fact{Name: "services", Value: "eBPF at connect"})
	return nil
}

// Feature returns the name of the feature that Probe tries.
func (o Translate) Feature() string { return "eBPF at connect" }

// Probe attaches the programs to a control group of its own and removes both.
func (o Translate) Probe(*lab.Env) error {
	group, err := cgroup.New()
	if err != nil {
		return err
	}
	attached, err := attachServices(group.Dir(), o)
	if err == nil {
		err = attached.Close()
	}
	return errors.Join(err, group.Close())
}
