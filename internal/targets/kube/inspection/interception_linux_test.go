package inspection

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/lab/labtest"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection/meshtest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/product"
)

// TestInterceptInKernel makes two pods of network namespaces, redirects their connections in the kernel as meshes do,
// and checks the conclusion from what the agents of both pods report.
func TestInterceptInKernel(t *testing.T) {
	server := netip.MustParseAddrPort("10.0.0.2:5201")
	tunnel := netip.AddrPortFrom(server.Addr(), meshtest.TunnelPort)
	for name, test := range map[string]struct {
		mode               product.MeshMode
		onClient, onServer bool           // the namespace redirects to a proxy
		next               netip.AddrPort // where the client's proxy connects to
		key                byte           // of what the proxies exchange; 0: plain text
		capture            bool
		want               Answer
		says               string
	}{
		"HBONE": {product.Ztunnel, true, true, tunnel, 0, false, Yes, "port 15008 is between them"},
		"HBONE, captured": {product.Ztunnel, true, true, tunnel, 0x55, true, Yes,
			"port 15008 is between them; nothing of it is readable in the "},
		"a tunnel without a cipher": {product.Ztunnel, true, true, tunnel, 0, true, No,
			"port 15008 is between them; but a capture in the client's pod has the traffic in plain text"},
		"plain text": {product.Ztunnel, true, true, server, 0, false, No, "in plain text"},
		"sidecars": {product.Sidecar, true, true, server, 0, false, Yes,
			"port 15001 of the client's and 15006 of the server's"},
		"sidecars, captured": {product.Sidecar, true, true, server, 0x55, true, Yes, "nothing of it is readable in the "},
		"sidecars without a cipher": {product.Sidecar, true, true, server, 0, true, No,
			"a capture in the client's pod has the traffic in plain text"},
		"client alone":    {product.Ambient, true, false, server, 0, false, No, "from no proxy in its pod"},
		"server alone":    {product.Ambient, false, true, server, 0, false, No, "no proxy in the client's pod"},
		"neither of them": {product.Ambient, false, false, server, 0, true, No, "the client's own end, and no proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			pods := [2]*netns.NS{labtest.NewNS(t), labtest.NewNS(t)}
			labtest.In(t, pods[0], func() error {
				return netns.With(func(c *netns.Conn) error {
					return c.AddVeth(netns.Link{Name: "eth0"}, netns.Link{Name: "eth0", NS: pods[1].Fd()})
				})
			})
			for i, ns := range pods {
				labtest.In(t, ns, func() error {
					return errors.Join(labtest.Address("eth0", fmt.Sprintf("10.0.0.%d/24", i+1)),
						netns.With(func(c *netns.Conn) error { return c.Up("lo") }))
				})
			}
			if test.onClient {
				meshtest.RedirectClient(t, pods[0], test.next, test.key)
			}
			if test.onServer {
				meshtest.RedirectServer(t, pods[1], server, test.key)
			}
			reports := connect(t, pods, server, test.capture)
			got := Intercept(test.mode, reports[0], reports[1])
			if got.Intercepted != test.want || !strings.Contains(got.Evidence, test.says) {
				t.Errorf("%s; want %s, %q\nclient %+v\nserver %+v", got, test.want, test.says, reports[0], reports[1])
			}
			if mtu := min(reports[0].MTU, reports[1].MTU); mtu != 1500 {
				t.Errorf("the MTU is %d, that of the way to a proxy", mtu)
			}
		})
	}
}

// connect makes the agents of two pods connect, and returns the reports of the client and the server.
func connect(t *testing.T, pods [2]*netns.NS, server netip.AddrPort, capture bool) (reports [2]preflight.Report) {
	t.Helper()
	spec := preflight.Spec{Role: preflight.Client, Token: preflight.NewToken(), Address: server, Sockets: true,
		Capture: capture, Timeout: 20 * time.Second}
	specs := [2]preflight.Spec{spec, spec}
	specs[1].Role = preflight.Server
	var both sync.WaitGroup
	var errs [2]error
	for i := range pods {
		both.Go(func() {
			errs[i] = pods[i].Do(func() (err error) {
				reports[i], err = preflight.Run(t.Context(), specs[i], "test")
				return err
			})
		})
	}
	both.Wait()
	if err := errors.Join(errs[:]...); err != nil || reports[0].Error+reports[1].Error != "" {
		t.Fatalf("%v; client %s; server %s", err, reports[0].Error, reports[1].Error)
	}
	return reports
}
