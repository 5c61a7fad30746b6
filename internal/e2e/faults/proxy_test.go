//go:build linux

package faults

import (
	"io"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"sync"

	"k8s.io/client-go/tools/clientcmd"
)

// A proxy passes connections on to the API server until they are cut.
type proxy struct {
	net.Listener
	to    string
	mu    sync.Mutex
	conns []net.Conn
}

// behindProxy has the program under test reach the API server by a proxy.
func (s *scene) behindProxy() *proxy {
	s.Helper()
	config, err := clientcmd.LoadFromFile(s.stage.kubeconfig)
	if err != nil {
		s.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	p := &proxy{Listener: l}
	for _, c := range config.Clusters {
		u, err := url.Parse(c.Server)
		if err != nil {
			s.Fatal(err)
		}
		p.to, c.TLSServerName, c.Server = u.Host, u.Hostname(), "https://"+l.Addr().String()
	}
	s.kubeconfig = filepath.Join(s.dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, s.kubeconfig); err != nil {
		s.Fatal(err)
	}
	go p.serve()
	s.undo = append(s.undo, func() { l.Close(); p.cut() })
	return p
}

func (p *proxy) serve() {
	for {
		near, err := p.Accept()
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

// cut ends all connections that there are, and returns how many.
func (p *proxy) cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	n := len(p.conns)
	p.conns = slices.Delete(p.conns, 0, n)
	return n
}
