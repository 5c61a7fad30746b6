package mesh

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
)

// identities returns identities of two nodes, by one authority.
func identities(t testing.TB) (a, b Identity) {
	t.Helper()
	authority, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	for i, of := range []*Identity{&a, &b} {
		if *of, err = authority.Issue(fmt.Sprintf("node%d", i+1)); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

// handshake lets two proxies shake hands over a pipe, and returns the error of either.
func handshake(t *testing.T, from, to Identity, name string) error {
	t.Helper()
	client, _, err := from.tls()
	if err != nil {
		t.Fatal(err)
	}
	_, server, err := to.tls()
	if err != nil {
		t.Fatal(err)
	}
	client.ServerName = name
	a, b := net.Pipe()
	served := make(chan error, 1)
	go func() {
		s := tls.Server(b, server)
		err := s.Handshake()
		b.Close()
		served <- err
	}()
	c := tls.Client(a, client)
	err = c.Handshake()
	if err == nil && c.ConnectionState().Version != tls.VersionTLS13 {
		t.Errorf("the version is %x", c.ConnectionState().Version)
	}
	if err == nil {
		_, _ = a.Read(make([]byte, 1)) // the server's response to the client's certificate
	}
	a.Close()
	if served := <-served; err == nil {
		err = served
	}
	return err
}

func TestBothEndsAreVerified(t *testing.T) {
	one, two := identities(t)
	foreign, _ := identities(t)
	if err := handshake(t, one, two, "node2"); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"another node's name":      handshake(t, one, two, "node3"),
		"a foreign server":         handshake(t, one, foreign, "node1"),
		"a foreign client":         handshake(t, Identity{one.root, foreign.certificate, foreign.key}, two, "node2"),
		"a client's own authority": handshake(t, foreign, two, "node2"),
	} {
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestIdentitiesAreHidden(t *testing.T) {
	i, _ := identities(t)
	secret := string(i.key[40:80])
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q", "%d"} {
		for _, v := range []any{i, &i, []Identity{i}, struct{ I Identity }{i}} {
			if got := fmt.Sprintf(verb, v); !strings.Contains(got, "(hidden)") || strings.Contains(got, secret) {
				t.Errorf("%s of %T shows %.100s", verb, v, got)
			}
		}
	}
	if text, err := json.Marshal(map[string]any{"i": i}); err != nil || string(text) != `{"i":{}}` {
		t.Errorf("as JSON: %s, %v", text, err)
	}
}
