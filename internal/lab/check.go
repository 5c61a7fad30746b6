//go:build linux

package lab

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A checker checks the datapath of one place: the two ends exchange packets, and what was seen meanwhile is compared
// with what the datapath promises.
type checker struct {
	site     *site
	capture  *machine.Capture
	ends     Ends
	wire     Wire
	tunnel   string // the plan's tunnel device
	mtu      int    // of the path as planned, bytes
	evidence evidence
}

func newChecker(s *site, capture *machine.Capture, ends Ends, w Wire, plan Plan) *checker {
	if ends.Client.Addr.Is6() && w.Layers6 != nil {
		w.Layers = w.Layers6
	}
	return &checker{site: s, capture: capture, ends: ends, wire: w, tunnel: plan.Tunnel, mtu: plan.PodMTU}
}

// check runs the exchange and judges what was seen.
func (c *checker) check() (PlaceInfo, error) {
	if err := c.correctMTU(); err != nil {
		return PlaceInfo{}, err
	}
	if _, err := c.capture.Frames(); err != nil {
		return PlaceInfo{}, err
	}
	before, err := c.readCounters()
	if err != nil {
		return PlaceInfo{}, err
	}
	ex := newExchange(c.ends, c.mtu, c.wire.Proxied)
	err = ex.run(c.site.namespaces)
	frames, captureErr := c.capture.Frames()
	if err := errors.Join(err, captureErr); err != nil {
		return PlaceInfo{}, fmt.Errorf("%w%s", err, sampleText(frames))
	}
	after, err := c.readCounters()
	if err != nil {
		return PlaceInfo{}, err
	}
	c.evidence = evidence{frames: frames, token: ex.token, client: c.ends.Client.Addr, server: c.ends.Server.Addr}
	c.setMACs()
	err = errors.Join(judge(c.wire, c.evidence), c.checkPeer(ex.peer), c.checkCounters(before, after))
	if err != nil {
		return PlaceInfo{}, err
	}
	facts, err := c.facts(ex)
	return PlaceInfo{Ends: c.ends, MTU: c.mtu, Facts: facts}, err
}

// correctMTU replaces the planned MTU, which is a pod's, by that of the uplink if both ends are nodes.
func (c *checker) correctMTU() error {
	if strings.Contains(c.ends.Client.Name+c.ends.Server.Name, "/") {
		return nil
	}
	device, err := c.site.namespaces.spaces[c.ends.Client.Name].netlink.Device(Uplink)
	c.mtu = device.MTU
	return err
}

// checkPeer compares who connected to the server with what the path promises: a proxy, or the client itself. A node
// that is a client has several addresses, so there only a proxy is checked.
func (c *checker) checkPeer(peer netip.Addr) error {
	own := peer == c.ends.Client.Addr
	if own == c.wire.Proxied && (own || NodeOf(c.ends.Client.Name) != "") {
		who := map[bool]string{true: "a proxy", false: "the client itself"}
		return fmt.Errorf("the server's connection should be from %s, but was from %s at %s",
			who[c.wire.Proxied], who[!own], peer)
	}
	return nil
}

// setMACs sets the source hardware addresses that packets of both ends must have on the underlay.
func (c *checker) setMACs() {
	of := func(host Host, node int) net.HardwareAddr {
		m := 0
		if _, err := fmt.Sscanf(host.Name, Node(node)+"/pod%d", &m); err == nil && c.wire.PodMAC {
			return PodMAC(node, m)
		}
		return NodeMAC(node)
	}
	c.evidence.clientMAC = of(c.ends.Client, c.ends.ClientNode)
	c.evidence.serverMAC = of(c.ends.Server, c.ends.ServerNode)
}

// counts are the packets that the tunnel device of each end's node received and sent.
type counts struct{ rx, tx [2]uint64 }

// tunnelDevice returns the name of the tunnel's device, or "" for native routing.
func (c *checker) tunnelDevice() string { return cmp.Or(c.wire.Device, c.tunnel) }

func (c *checker) readCounters() (counts, error) {
	var all counts
	if c.tunnelDevice() == "" {
		return all, nil
	}
	for i, n := range []int{c.ends.ClientNode, c.ends.ServerNode} {
		if count, ok := c.site.namespaces.counts[Node(n)]; ok {
			var err error
			if all.rx[i], all.tx[i], err = count(); err != nil {
				return all, fmt.Errorf("%s: %w", Node(n), err)
			}
			continue
		}
		d, err := c.site.namespaces.spaces[Node(n)].netlink.Device(c.tunnelDevice())
		if err != nil {
			return all, fmt.Errorf("%s: %w", Node(n), err)
		}
		all.rx[i], all.tx[i] = d.RX, d.TX
	}
	return all, nil
}

// checkCounters compares the increase of the tunnel's counters with what the path should cause: each protocol sends at
// least one packet each way.
func (c *checker) checkCounters(before, after counts) error {
	const least = 2
	for i, n := range []int{c.ends.ClientNode, c.ends.ServerNode} {
		rx, tx := after.rx[i]-before.rx[i], after.tx[i]-before.tx[i]
		switch {
		case c.tunnelDevice() == "":
		case c.wire.Device == "" && rx+tx > 0:
			return fmt.Errorf("%s: %s received %d and sent %d packets; expected none, because this path does not use it",
				Node(n), c.tunnelDevice(), rx, tx)
		case c.wire.Device != "" && (rx < least || tx < least):
			return fmt.Errorf("%s: %s received %d and sent %d packets while the two ends talked; expected at least %d each",
				Node(n), c.tunnelDevice(), rx, tx, least)
		}
	}
	return nil
}

// facts returns the facts of the site, and those of the place that the check found.
func (c *checker) facts(t *exchange) ([]result.Fact, error) {
	header := "bare packets"
	switch {
	case c.wire.Quiet:
		header = "nothing: the path stays on its node"
	case len(c.wire.Layers) > 0:
		header = strings.Join(c.wire.Layers, " ")
	}
	seen := "captured between the nodes: " + header
	own := slices.Clone(c.site.namespaces.facts)
	if !c.wire.Proxied {
		own = slices.DeleteFunc(own, func(f result.Fact) bool { return f.Name == ProxyFact })
		own = append(own, result.Fact{Name: ProxyFact, Value: result.None, Evidence: seen})
	}
	facts := slices.Concat(own, []result.Fact{
		{Name: "encapsulation", Value: cmp.Or(c.wire.Encapsulation, result.None), Evidence: seen},
		{Name: "encryption", Value: cmp.Or(c.wire.Encryption, result.None), Evidence: seen},
		{Name: "client", Value: c.ends.Client.Name}, {Name: "server", Value: c.ends.Server.Name},
		{Name: "dial", Value: c.ends.Dial.String()},
		{Name: "mtu", Value: strconv.Itoa(c.mtu)}, {Name: "path-mtu", Value: strconv.Itoa(t.pathMTU)},
		{Name: "underlay-header", Value: header},
		{Name: "congestion-control", Value: t.congestion},
	})
	if c.wire.Proxied {
		const proof = "yes: the server's connection is not from the client, but from a proxy at "
		facts = append(facts, result.Fact{Name: "intercepted", Value: proof + t.peer.String()})
	}
	for _, end := range []struct {
		name string
		host Host
	}{{"client", c.ends.Client}, {"server", c.ends.Server}} {
		fact := result.Fact{Name: end.name + "-offloads"}
		err := c.site.namespaces.spaces[end.host.Name].ns.Do(func() error {
			fact.Value = machine.InspectDevice(Uplink).Offloads
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", end.host.Name, err)
		}
		facts = append(facts, fact)
	}
	return facts, nil
}

// evidence is what was captured on the underlay during an exchange.
type evidence struct {
	frames               [][]byte
	token                []byte // in every datagram and in the stream, both ways
	client, server       netip.Addr
	clientMAC, serverMAC net.HardwareAddr
}

// judge compares the evidence with what the datapath's name promises. The error names what was expected and what was
// seen.
func judge(w Wire, e evidence) error {
	switch {
	case w.Quiet:
		return judgeQuiet(e)
	case w.Sealed:
		return judgeSealed(w, e)
	}
	return judgeOpen(w, e)
}

// judgeQuiet returns an error if the underlay carried data of the exchange, or any IP packet that hosts do not send on
// their own.
func judgeQuiet(e evidence) error {
	for _, data := range e.frames {
		f := dissect(data)
		if bytes.Contains(data, e.token) {
			return fmt.Errorf("the path stays within a node, but its data was on the underlay: %s", f)
		}
		if f.IP && !isBackground(f) {
			return fmt.Errorf("the path stays within a node, but there was a packet on the underlay: %s", f)
		}
	}
	return nil
}

// isBackground reports whether hosts send such a packet on their own: ICMPv6, such as neighbour discovery, or
// multicast.
func isBackground(f frame) bool {
	return f.Inner.Proto == "icmpv6" || f.Inner.Dst.Addr().IsMulticast() || f.Outer.Dst.Addr().IsMulticast()
}

// exchanged are the packets of an exchange that must be seen on the underlay.
var exchanged = []string{"udp from the client", "udp from the server", "tcp from the client", "tcp from the server"}

// judgeOpen returns an error unless the data were seen both ways over both protocols, always within the right headers,
// between the right addresses, and from the right device.
func judgeOpen(w Wire, e evidence) error {
	seen := map[string]bool{}
	for _, data := range e.frames {
		f := dissect(data)
		// An ICMP error quotes the packet that it is about.
		if !bytes.Contains(data, e.token) || strings.HasPrefix(f.Inner.Proto, "icmp") {
			continue
		}
		if err := judgeHeaders(w, f); err != nil {
			return err
		}
		from, mac := "client", e.clientMAC
		if f.Inner.Src.Addr() == e.server {
			from, mac = "server", e.serverMAC
		}
		if !f.Inner.between(e.client, e.server) {
			return fmt.Errorf("the packet on the underlay is not between the two ends %s and %s: %s", e.client, e.server, f)
		}
		if f.Src.String() != mac.String() {
			return fmt.Errorf("the packet on the underlay is not from the %s's device %s: %s", from, mac, f)
		}
		seen[f.Inner.Proto+" from the "+from] = true
	}
	for _, want := range exchanged {
		if !seen[want] {
			return fmt.Errorf("expected %s with %s on the underlay, saw none%s", want, headers(w), sampleText(e.frames))
		}
	}
	return nil
}

// judgeSealed returns an error unless packets with the right headers went both ways and the data were not readable.
func judgeSealed(w Wire, e evidence) error {
	const least = 2 // one for each protocol, or data and what acknowledges them
	var there, back int
	begun := map[packet]bool{}
	for _, data := range e.frames {
		f := dissect(data)
		f.within(begun)
		if bytes.Contains(data, e.token) {
			return fmt.Errorf("the datapath encrypts, but the data was readable on the underlay: %s", f)
		}
		if !f.IP || isBackground(f) {
			continue
		}
		if err := judgeHeaders(w, f); err != nil {
			return err
		}
		switch f.Src.String() {
		case e.clientMAC.String():
			there++
		case e.serverMAC.String():
			back++
		}
	}
	if there < least || back < least {
		return fmt.Errorf("expected at least %d packets each way with %s on the underlay, saw %d and %d%s",
			least, headers(w), there, back, sampleText(e.frames))
	}
	return nil
}

func judgeHeaders(w Wire, f frame) error {
	if !slices.Equal(f.Layers, w.Layers) || f.Sealed != w.Sealed {
		return fmt.Errorf("the headers on the underlay are not the datapath's: expected %s, saw %s", headers(w), f)
	}
	return nil
}

func headers(w Wire) string {
	switch {
	case len(w.Layers) == 0:
		return "bare packets"
	case w.Sealed:
		return "[" + strings.Join(w.Layers, " ") + "] sealed"
	}
	return "[" + strings.Join(w.Layers, " ") + "]"
}

// sampleText describes the first few frames for an error.
func sampleText(frames [][]byte) string {
	const most = 4
	if len(frames) == 0 {
		return "; nothing was on the underlay"
	}
	var texts []string
	for _, data := range frames[:min(most, len(frames))] {
		texts = append(texts, dissect(data).String())
	}
	return fmt.Sprintf("; of %d frames on the underlay the first: %s", len(frames), strings.Join(texts, "; "))
}
