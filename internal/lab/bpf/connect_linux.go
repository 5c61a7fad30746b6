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

// Extend adds the Services of all pods of a plan, for TCP and UDP, IPv4 and IPv6, which it translates when sockets
// connect, as Cilium does without kube-proxy. A plan without pods is not changed.
func Extend(p *lab.Plan, t lab.Topology) {
	var services []Service
	for _, s := range p.Services(t) {
		endpoint := s.Endpoint.All()
		for i, addr := range s.Addr.All() {
			services = append(services,
				Service{netip.AddrPortFrom(addr, lab.ServicePort), netip.AddrPortFrom(endpoint[i], lab.ServicePort)})
		}
	}
	if len(services) > 0 {
		// The programs belong to no namespace; the step uses that of the switch.
		p.Add(lab.Switch, Translate(services))
	}
}

// Translate returns an op that puts the site's commands into a control group, whose processes get the endpoints of
// Services for their addresses.
func Translate(services []Service) lab.Op {
	pairs := make([]string, len(services))
	for i, s := range services {
		pairs[i] = fmt.Sprintf("%s>%s", s.Addr, s.Endpoint)
	}
	return lab.Op{
		Text: "cgroup ebpf tcp,udp at connect,sendmsg,recvmsg,getpeername map " + strings.Join(pairs, " "),
		Apply: func(e *lab.Env) error {
			group, attached, err := attachToNewGroup(services)
			if err != nil {
				return err
			}
			e.UseGroup(group)
			e.OnClose(func() error { return errors.Join(attached.Close(), group.Close()) })
			e.Fact(result.Fact{Name: "services", Value: "eBPF at connect"})
			return nil
		},
		Feature: "eBPF at connect",
		Probe: func(*lab.Env) error {
			group, attached, err := attachToNewGroup(services)
			if err != nil {
				return err
			}
			return errors.Join(attached.Close(), group.Close())
		},
	}
}

// attachToNewGroup attaches the programs to a control group that it makes.
func attachToNewGroup(services []Service) (*cgroup.Group, *Attachment, error) {
	group, err := cgroup.New()
	if err != nil {
		return nil, nil, err
	}
	attached, err := attachServices(group.Dir(), services)
	if err != nil {
		return nil, nil, errors.Join(err, group.Close())
	}
	return group, attached, nil
}
