package inspection

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/product"
)

// The proxies of known meshes have their sockets in the network namespaces of the pods: those of sidecars, and those
// that a ztunnel opens there. So a pod's own table of sockets, which needs no rights, shows whether a connection of its
// agent ends at a proxy. On the client, the proxy's socket has the client's address and port as its remote end; on the
// server, it has the server's. Between the proxies, HBONE goes to port 15008 of the server's pod.
//
// Agents that may capture packets (profile=yes) also look for the token of the connection in what their pods send and
// receive: a mesh encrypts all of it.

// An Answer is the answer to a question that the evidence may leave open.
type Answer string

// The answers.
const (
	Yes           Answer = "yes"
	No            Answer = "no"
	Unproven      Answer = result.Unknown
	NotApplicable Answer = "not applicable"
)

// An Interception is the conclusion whether a mesh took over a TCP connection between two pods.
type Interception struct {
	Intercepted Answer
	Evidence    string // for the answer, or what is missing for one
}

// NodeInterception returns the conclusion about a connection with an end in the network of a node.
func NodeInterception() Interception {
	return Interception{NotApplicable, "an end is in the network of its node, where meshes take over nothing"}
}

// Intercept concludes from the reports of both pods whether a mesh took over the connection between them. No means that
// the traffic demonstrably did not pass the mesh from end to end, or passed it in plain text.
func Intercept(mode product.MeshMode, client, server preflight.Report) Interception {
	i := bySockets(mode, client, server)
	if i.Intercepted == No {
		return i
	}
	pods, ends := [2]string{"client", "server"}, [2]*preflight.Captured{client.Captured, server.Captured}
	for k, c := range ends {
		if c != nil && c.Readable {
			i.Evidence += fmt.Sprintf("; but a capture in the %s's pod has the traffic in plain text", pods[k])
			return Interception{No, i.Evidence}
		}
	}
	for k, pod := range pods {
		switch c := ends[k]; {
		case c == nil:
			i.Evidence += "; nothing was captured, which takes profile=yes"
			return i
		case c.Error != "":
			i.Evidence += fmt.Sprintf("; not captured in the %s's pod: %s", pod, c.Error)
			return i
		case c.Segments == 0:
			i.Evidence += fmt.Sprintf("; a capture in the %s's pod has none of it", pod)
			return i
		}
	}
	i.Evidence += fmt.Sprintf("; nothing of it is readable in the %d TCP segments captured in the client's pod, nor in "+
		"the %d in the server's", ends[0].Segments, ends[1].Segments)
	return i
}

// bySockets concludes from the sockets of both pods.
func bySockets(mode product.MeshMode, client, server preflight.Report) Interception {
	seesClient := client.Local.IsValid() && server.Remote == client.Local
	if !ownTable(client) || !ownTable(server) {
		if seesClient {
			return Interception{No, fmt.Sprintf("the server sees %v, which is the client's own end", client.Local)}
		}
		return Interception{Unproven, "the sockets of the pods cannot be read, and the server may see another address or " +
			"port than the client's because it was translated"}
	}
	at, leaves := proxyOf(client, func(machine.Socket) bool { return true })
	_, arrives := proxyOf(server, func(s machine.Socket) bool { return s.Local == server.Remote })
	switch {
	case seesClient && !leaves:
		return Interception{No, fmt.Sprintf("the server sees %v, which is the client's own end, and no proxy is between them",
			client.Local)}
	case !leaves && arrives:
		return Interception{No, fmt.Sprintf("a proxy in the server's pod takes the traffic, but no proxy in the client's "+
			"pod has the other end of %v", client.Local)}
	case !leaves:
		return Interception{Unproven, fmt.Sprintf("no proxy in the client's pod has the other end of %v, and the server "+
			"sees %v", client.Local, server.Remote)}
	case !arrives:
		return Interception{No, fmt.Sprintf("a proxy in the client's pod has the other end, at port %d, but the server's "+
			"connection comes from %v and from no proxy in its pod", at.Local.Port(), server.Remote)}
	case !mode.HBONE():
		return Interception{Yes, fmt.Sprintf("proxies in both pods have the other ends, at port %d of the client's%s",
			at.Local.Port(), inboundPort(server))}
	}
	return hbone(client, server)
}

// hbone concludes whether the proxies, which have the other ends in both pods, exchange the traffic by HBONE.
func hbone(client, server preflight.Report) Interception {
	connected := func(r preflight.Report, end func(machine.Socket) netip.AddrPort, port uint16) bool {
		return slices.ContainsFunc(r.Sockets, func(s machine.Socket) bool { return !s.Listening && end(s).Port() == port })
	}
	local := func(s machine.Socket) netip.AddrPort { return s.Local }
	remote := func(s machine.Socket) netip.AddrPort { return s.Remote }
	switch sent, received := connected(client, remote, product.HBONEPort), connected(server, local, product.HBONEPort); {
	case sent && received:
		return Interception{Yes, "proxies in both pods have the other ends, and a connection to port 15008 is between them"}
	case !sent && !received && connected(server, local, product.PlaintextPort):
		return Interception{No, "the proxies pass the traffic in plain text: to port 15006 of the server's pod, with no " +
			"connection to port 15008"}
	}
	return Interception{Unproven, "proxies in both pods have the other ends, but not both have a connection to port 15008"}
}

// inboundPort names the port at which the proxy of the server's pod takes connections; empty if none is known.
func inboundPort(server preflight.Report) string {
	for _, port := range product.InboundPorts() {
		for _, s := range server.Sockets {
			if !s.Listening && s.Local.Port() == port {
				return fmt.Sprintf(" and %d of the server's", port)
			}
		}
	}
	return ""
}

// ownTable reports whether the sockets in a report are those of the connection's network namespace.
func ownTable(r preflight.Report) bool {
	return slices.Contains(r.Sockets, machine.Socket{Local: r.Local, Remote: r.Remote})
}

// proxyOf returns the socket in a report's own network namespace that has the other end of its connection, and that
// matches.
func proxyOf(r preflight.Report, matches func(machine.Socket) bool) (machine.Socket, bool) {
	i := slices.IndexFunc(r.Sockets, func(s machine.Socket) bool {
		return s.Remote == r.Local && !s.Listening && matches(s)
	})
	if i < 0 {
		return machine.Socket{}, false
	}
	return r.Sockets[i], true
}
