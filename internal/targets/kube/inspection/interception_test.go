package inspection

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/targets/kube/product"
)

func end(address string, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(address), port)
}

// withSockets returns the report of a place with a connection, and with its own socket and further ones, each "LOCAL
// REMOTE".
func withSockets(local, remote string, sockets ...string) preflight.Report {
	r := preflight.Report{Local: netip.MustParseAddrPort(local), Remote: netip.MustParseAddrPort(remote)}
	r.Sockets = []machine.Socket{{Local: r.Local, Remote: r.Remote}}
	for _, text := range sockets {
		a, b, _ := strings.Cut(text, " ")
		r.Sockets = append(r.Sockets, machine.Socket{Local: netip.MustParseAddrPort(a), Remote: netip.MustParseAddrPort(b)})
	}
	return r
}

// TestIntercept checks the conclusion from the sockets and captures of both pods, for each mode and each way by which
// traffic passes a mesh or does not. The client is 10.244.1.7, the server 10.244.2.8:5201, its Service 10.96.0.9:5201.
func TestIntercept(t *testing.T) {
	const atClient, atServer, toService = "10.244.1.7:49832", "10.244.2.8:5201", "10.96.0.9:5201"
	unread := func(r preflight.Report) preflight.Report {
		r.Sockets = nil
		return r
	}
	captured := func(r preflight.Report, segments int, readable bool, failure string) preflight.Report {
		r.Captured = &preflight.Captured{Segments: segments, Readable: readable, Error: failure}
		return r
	}
	client := withSockets(atClient, atServer, "127.0.0.1:15001 "+atClient, "10.244.1.7:46050 10.244.2.8:15008")
	viaService := withSockets(atClient, toService, "127.0.0.1:15001 "+atClient, "10.244.1.7:46050 10.244.2.8:15008")
	server := withSockets(atServer, "10.244.1.7:39044", "10.244.1.7:39044 "+atServer, "10.244.2.8:15008 10.244.1.7:46050")
	direct := withSockets(atServer, atClient)
	for name, test := range map[string]struct {
		mode           product.MeshMode
		client, server preflight.Report
		want           Answer
		says           string
	}{
		"HBONE":              {product.Ztunnel, client, server, Yes, "a connection to port 15008 is between them"},
		"HBONE to a Service": {product.Ambient, viaService, server, Yes, "port 15008"},
		"not enrolled": {product.Ztunnel, withSockets(atClient, atServer), direct, No,
			"the server sees 10.244.1.7:49832, which is the client's own end, and no proxy"},
		"not enrolled, by a Service that hides the client": {product.Ambient, withSockets(atClient, toService),
			withSockets(atServer, "10.0.0.1:31000"), Unproven, "no proxy in the client's pod"},
		"not readable, and not enrolled": {product.Ambient, unread(withSockets(atClient, atServer)), unread(direct), No,
			"the client's own end"},
		"not readable": {product.Ambient, unread(client), unread(server), Unproven, "cannot be read"},
		"the table of another namespace": {product.Ambient, client,
			preflight.Report{Local: server.Local, Remote: server.Remote, Sockets: client.Sockets}, Unproven, "cannot be read"},
		"only the client is enrolled": {product.Ambient, client, withSockets(atServer, "10.244.1.7:46050"), No,
			"from no proxy in its pod"},
		"only the server is enrolled": {product.Ambient, withSockets(atClient, atServer), server, No,
			"no proxy in the client's pod"},
		"plain text between proxies": {product.Ztunnel,
			withSockets(atClient, atServer, "127.0.0.1:15001 "+atClient, "10.244.1.7:46050 "+atServer),
			withSockets(atServer, "10.244.1.7:39044", "10.244.1.7:39044 "+atServer, "10.244.2.8:15006 10.244.1.7:46050"),
			No, "plain text"},
		"proxies with another tunnel": {product.Ambient,
			withSockets(atClient, atServer, "127.0.0.1:15001 "+atClient),
			withSockets(atServer, "10.244.1.7:39044", "10.244.1.7:39044 "+atServer), Unproven, "not both have a connection"},
		"Istio's sidecars": {product.Sidecar,
			withSockets(atClient, atServer, "127.0.0.1:15001 "+atClient, "10.244.1.7:46050 "+atServer),
			withSockets(atServer, "127.0.0.6:39044", "127.0.0.6:39044 "+atServer, "10.244.2.8:15006 10.244.1.7:46050"),
			Yes, "port 15001 of the client's and 15006 of the server's"},
		"Linkerd's sidecars": {product.Sidecar,
			withSockets(atClient, toService, "127.0.0.1:4140 "+atClient, "10.244.1.7:46050 10.244.2.8:4143"),
			withSockets(atServer, "10.244.2.8:39044", "10.244.2.8:39044 "+atServer, "10.244.2.8:4143 10.244.1.7:46050"),
			Yes, "port 4140 of the client's and 4143 of the server's"},
		"an unknown proxy": {"", withSockets(atClient, atServer, "127.0.0.1:9000 "+atClient),
			withSockets(atServer, "127.0.0.1:9", "127.0.0.1:9 "+atServer), Yes, "port 9000 of the client's"},
		"no mesh": {"", withSockets(atClient, atServer), direct, No, "no proxy"},
		"HBONE, captured": {product.Ztunnel, captured(client, 7, false, ""), captured(server, 9, false, ""), Yes,
			"; nothing of it is readable in the 7 TCP segments captured in the client's pod, nor in the 9 in the server's"},
		"readable at the server": {product.Ztunnel, captured(client, 7, false, ""), captured(server, 9, true, ""), No,
			"is between them; but a capture in the server's pod has the traffic in plain text"},
		"readable at the server, and not captured at the client": {product.Ztunnel, captured(client, 0, false, "lost"),
			captured(server, 9, true, ""), No, "a capture in the server's pod has the traffic in plain text"},
		"readable, and the sockets prove nothing": {product.Ambient, captured(unread(client), 7, true, ""),
			captured(unread(server), 9, true, ""), No, "cannot be read, and the server may see another address or port than " +
				"the client's because it was translated; but a capture in the client's pod has"},
		"captured, and the sockets prove nothing": {product.Ambient, captured(unread(client), 7, false, ""),
			captured(unread(server), 9, false, ""), Unproven, "nothing of it is readable"},
		"not allowed to capture": {product.Ztunnel, captured(client, 0, false, "operation not permitted"),
			captured(server, 0, false, "operation not permitted"), Yes,
			"; not captured in the client's pod: operation not permitted"},
		"not captured at the server": {product.Ztunnel, captured(client, 7, false, ""),
			captured(server, 3, false, "4 of 7 were lost"), Yes, "; not captured in the server's pod: 4 of 7 were lost"},
		"a capture without the traffic": {product.Ztunnel, captured(client, 0, false, ""), captured(server, 9, false, ""),
			Yes, "; a capture in the client's pod has none of it"},
		"not captured": {product.Ztunnel, client, server, Yes, "; nothing was captured, which takes profile=yes"},
		"not enrolled, captured": {"", captured(withSockets(atClient, atServer), 7, true, ""),
			captured(direct, 7, true, ""), No, "no proxy is between them"},
		// A pod that the mesh lost keeps connections of earlier traffic.
		"lost after earlier traffic": {product.Ambient,
			withSockets(atClient, atServer, "10.244.1.7:46050 10.244.2.8:15008"), direct, No, "no proxy"},
	} {
		got := Intercept(test.mode, test.client, test.server)
		if got.Intercepted != test.want || !strings.Contains(got.Evidence, test.says) {
			t.Errorf("%s: %+v; want %s, %q", name, got, test.want, test.says)
		}
	}
}
