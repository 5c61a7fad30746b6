package e2e

import (
	"io"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// A Proxy forwards connections to an API server until they are cut.
type Proxy struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	conns    []net.Conn
}

// StartProxy starts a proxy in front of the API server of a kubeconfig, and writes a kubeconfig that uses the proxy.
// The proxy is closed at the end of the test.
func StartProxy(t testing.TB, kubeconfig, through string) *Proxy {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l}
	t.Cleanup(p.Close)
	for _, c := range config.Clusters {
		u, err := url.Parse(c.Server)
		if err != nil {
			t.Fatal(err)
		}
		p.to, c.TLSServerName, c.Server = u.Host, u.Hostname(), "https://"+l.Addr().String()
	}
	if err := clientcmd.WriteToFile(*config, through); err != nil {
		t.Fatal(err)
	}
	go p.serve()
	return p
}

func (p *Proxy) serve() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.to)
		if err != nil {
			near.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, near, far)
		p.mu.Unlock()
		for _, c := range [][2]net.Conn{{near, far}, {far, near}} {
			go func() {
				_, _ = io.Copy(c[0], c[1])
				c[0].Close()
			}()
		}
	}
}

// Cut closes all current connections, and returns the number of their ends: two per connection.
func (p *Proxy) Cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	n := len(p.conns)
	p.conns = slices.Delete(p.conns, 0, n)
	return n
}

// Close closes the proxy and its connections. It may be called repeatedly.
func (p *Proxy) Close() {
	p.listener.Close()
	p.Cut()
}
