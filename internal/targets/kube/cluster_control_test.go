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
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
)

// A gateway stands before the API server, with the administrator's rights, and lets some upgrades pass.
type gateway struct {
	to     *httputil.ReverseProxy
	passes map[string]bool // what of websocket and SPDY/3.1

	mu   sync.Mutex
	seen map[string]int // upgrades asked for
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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

func (g *gateway) asked(protocol string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[protocol]
}

// behind is a target on the cluster as seen through a gateway.
func behind(t *testing.T, c *cluster.Cluster, passes ...string) (*kubeTarget, *gateway) {
	t.Helper()
	config := rest.CopyConfig(c.Config)
	config.WrapTransport = nil
	config.NextProtos = []string{"http/1.1"} // which alone can be upgraded
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{passes: map[string]bool{}, seen: map[string]int{}, to: &httputil.ReverseProxy{
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
	return open(t, "kube:?kubeconfig="+file+"&"+image), g
}

// Where WebSocket is refused, SPDY carries everything, and is taken at once from the second connection on.
func TestFallback(t *testing.T) {
	c := admin(t)
	for name, test := range map[string]struct {
		passes    []string
		websocket bool
	}{
		"both": {[]string{"websocket", "SPDY/3.1"}, true},
		"SPDY": {[]string{"SPDY/3.1"}, false},
	} {
		k, g := behind(t, c, test.passes...)
		site, err := targets.One(t.Context(), k, targets.Placement{Path: targets.PodPodOther})
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
		websocket, spdy := g.asked("websocket"), g.asked("SPDY/3.1")
		t.Logf("%s: %d upgrades to WebSocket and %d to SPDY were asked for", name, websocket, spdy)
		// Both ends of a site connect at the same time, so two may find out for themselves.
		if test.websocket && spdy > 0 || !test.websocket && (spdy < 3 || websocket > 2) {
			t.Errorf("%s: %d times WebSocket, %d times SPDY", name, websocket, spdy)
		}
	}
	if left := leftIn(t, c); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Where neither passes, the error says so and what to do.
func TestNoUpgrade(t *testing.T) {
	c := admin(t)
	k, _ := behind(t, c)
	_, err := targets.One(t.Context(), k, targets.Placement{Path: targets.PodPodOther})
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
	if left := leftIn(t, c); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
