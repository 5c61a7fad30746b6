package kube

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
)

// An upgradeGateway is a proxy in front of the API server, with the administrator's rights, that passes only some
// upgrades.
type upgradeGateway struct {
	to     *httputil.ReverseProxy
	passes map[string]bool // by protocol: websocket, SPDY/3.1

	mu   sync.Mutex
	seen map[string]int // requested upgrades
}

func (g *upgradeGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if wanted := r.Header.Get("Upgrade"); wanted != "" {
		g.mu.Lock()
		g.seen[wanted]++
		g.mu.Unlock()
		if !g.passes[wanted] {
			http.Error(w, "upgrades are not passed on", http.StatusBadGateway)
			return
		}
	}
	g.to.ServeHTTP(w, r)
}

func (g *upgradeGateway) count(protocol string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[protocol]
}

// targetBehindGateway returns a target that reaches the cluster through a gateway.
func targetBehindGateway(t *testing.T, c *cluster.Cluster, passes ...string) (*kubeTarget, *upgradeGateway) {
	t.Helper()
	config := rest.CopyConfig(c.Config)
	config.WrapTransport = nil
	config.NextProtos = []string{"http/1.1"} // only HTTP/1.1 can be upgraded
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	g := &upgradeGateway{passes: map[string]bool{}, seen: map[string]int{}, to: &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, // watches
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
	}}
	for _, protocol := range passes {
		g.passes[protocol] = true
	}
	server := httptest.NewServer(g)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	file := filepath.Join(t.TempDir(), "kubeconfig")
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "gateway",
		Clusters:       map[string]*clientcmdapi.Cluster{"gateway": {Server: server.URL}},
		Contexts:       map[string]*clientcmdapi.Context{"gateway": {Cluster: "gateway"}},
	}, file)
	if err != nil {
		t.Fatal(err)
	}
	_, image, _ := strings.Cut(realCluster(t), "&")
	return newTestTarget(t, "kube:?kubeconfig="+file+"&"+image), g
}

// TestFallback checks that SPDY is used if WebSocket is refused, and that later connections do not try WebSocket again.
func TestFallback(t *testing.T) {
	c := admin(t)
	for name, test := range map[string]struct {
		passes    []string
		websocket bool
	}{
		"both": {[]string{"websocket", "SPDY/3.1"}, true},
		"SPDY": {[]string{"SPDY/3.1"}, false},
	} {
		k, g := targetBehindGateway(t, c, test.passes...)
		site, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: result.PodPodOther})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		long := strings.Repeat("0123456789abcdef", 1<<15)
		var out bytes.Buffer
		if err := site.Server.Run(t.Context(), host.Cmd{Args: []string{"cat"}, Stdin: strings.NewReader(long),
			Stdout: &out}); err != nil || out.String() != long {
			t.Errorf("%s: %d bytes came back, %v", name, out.Len(), err)
		}
		var exit *host.ExitError
		if err := site.Client.Run(t.Context(), host.Cmd{Args: []string{"false"}}); !errors.As(err, &exit) ||
			exit.Status != 1 {
			t.Errorf("%s: %v", name, err)
		}
		if err := errors.Join(site.Close(t.Context()), k.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		websocket, spdy := g.count("websocket"), g.count("SPDY/3.1")
		t.Logf("%s: %d upgrades to WebSocket and %d to SPDY were asked for", name, websocket, spdy)
		// Both ends of a site connect at the same time, so each may be refused once.
		if test.websocket && spdy > 0 || !test.websocket && (spdy < 3 || websocket > 2) {
			t.Errorf("%s: %d times WebSocket, %d times SPDY", name, websocket, spdy)
		}
	}
	if left := leftovers(t, c); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestNoUpgrade checks that the error names a remedy if neither WebSocket nor SPDY passes.
func TestNoUpgrade(t *testing.T) {
	c := admin(t)
	k, _ := targetBehindGateway(t, c)
	_, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: result.PodPodOther})
	t.Log(err)
	for _, words := range []string{"lets neither WebSocket nor SPDY pass", "header Upgrade", "server=",
		"502 Bad Gateway"} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("it does not say %q", words)
		}
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if left := leftovers(t, c); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
