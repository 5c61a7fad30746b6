package preflight

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/machine"
)

func run(t *testing.T, s Spec) Report {
	t.Helper()
	r, err := Run(t.Context(), s, "test")
	if err != nil {
		t.Error(err)
	}
	return r
}

// freeAddress returns an address on which nothing listens.
func freeAddress(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return netip.MustParseAddrPort(l.Addr().String())
}

func TestMeet(t *testing.T) {
	at, token := freeAddress(t), NewToken()
	served := make(chan Report)
	go func() {
		served <- run(t, Spec{Role: Server, Token: token, Address: at, Timeout: 20 * time.Second})
	}()
	// A client with a wrong token is not answered.
	wrong := run(t, Spec{Role: Client, Token: NewToken(), Address: at, Timeout: 500 * time.Millisecond})
	if !strings.Contains(wrong.Error, "no answer from "+at.String()) {
		t.Errorf("with a wrong token: %q", wrong.Error)
	}
	client := run(t, Spec{Role: Client, Token: token, Address: at, Timeout: 20 * time.Second})
	server := <-served
	if client.Error != "" || server.Error != "" || client.Attempts < 1 || server.Local != at ||
		server.Remote != client.Local || client.Remote != at {
		t.Errorf("client %+v\nserver %+v", client, server)
	}
	if client.Program != "test" || len(client.Interfaces) == 0 || client.Sockets != nil || server.Sockets != nil {
		t.Errorf("%+v", client)
	}
}

// TestMeetWithSockets checks that both places report the connected sockets of both ends, which share a network
// namespace here.
func TestMeetWithSockets(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux lists the sockets of a network namespace")
	}
	at, token := freeAddress(t), NewToken()
	served := make(chan Report)
	go func() {
		served <- run(t, Spec{Role: Server, Token: token, Address: at, Timeout: 20 * time.Second, Sockets: true})
	}()
	client := run(t, Spec{Role: Client, Token: token, Address: at, Timeout: 20 * time.Second, Sockets: true})
	server := <-served
	for _, r := range []Report{client, server} {
		for _, want := range []machine.Socket{{Local: r.Local, Remote: r.Remote}, {Local: r.Remote, Remote: r.Local}} {
			if !slices.Contains(r.Sockets, want) {
				t.Errorf("%+v is missing in %+v", want, r.Sockets)
			}
		}
	}
}

// TestMeetInTurn checks that preflights with the same address at the same time wait for each other.
func TestMeetInTurn(t *testing.T) {
	at := freeAddress(t)
	var all sync.WaitGroup
	for range 5 {
		token := NewToken()
		for _, role := range []Role{Server, Client} {
			all.Go(func() {
				r := run(t, Spec{Role: role, Token: token, Address: at, Timeout: 20 * time.Second})
				if r.Error != "" {
					t.Errorf("the %s: %s", role, r.Error)
				}
			})
		}
	}
	all.Wait()
}

// TestStrangers checks that connections without a valid token do not delay the client, and are closed at the end.
func TestStrangers(t *testing.T) {
	at, token := freeAddress(t), NewToken()
	served := make(chan Report)
	go func() {
		served <- run(t, Spec{Role: Server, Token: token, Address: at, Timeout: 20 * time.Second})
	}()
	var strangers []net.Conn
	for len(strangers) < 20 {
		c, err := net.Dial("tcp", at.String())
		if err != nil {
			time.Sleep(time.Millisecond) // the server is not there yet
			continue
		}
		defer c.Close()
		_, _ = c.Write([]byte(strings.Repeat("?", len(token)+1)[:len(strangers)%3*13]))
		strangers = append(strangers, c)
	}
	// If the server read them one after the other, this would take 20 s.
	client := run(t, Spec{Role: Client, Token: token, Address: at, Timeout: 10 * time.Second})
	if server := <-served; client.Error != "" || server.Error != "" {
		t.Errorf("client %q, server %q", client.Error, server.Error)
	}
	for i, c := range strangers {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if n, err := c.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("stranger %d got %d bytes, %v", i, n, err)
		}
	}
}

// TestAbandonedAttempt checks that a connection with the token whose client has given up, as a proxy may deliver it,
// does not count as the client: the server waits for one that confirms its answer.
func TestAbandonedAttempt(t *testing.T) {
	at, token := freeAddress(t), NewToken()
	served := make(chan Report)
	go func() {
		served <- run(t, Spec{Role: Server, Token: token, Address: at, Timeout: 20 * time.Second})
	}()
	for {
		c, err := net.Dial("tcp", at.String())
		if err != nil {
			time.Sleep(time.Millisecond) // the server is not there yet
			continue
		}
		_, _ = c.Write([]byte(token))
		c.Close()
		break
	}
	client := run(t, Spec{Role: Client, Token: token, Address: at, Timeout: 10 * time.Second})
	if server := <-served; client.Error != "" || server.Error != "" || server.Remote != client.Local {
		t.Errorf("client %+v\nserver %+v", client, server)
	}
}

func TestNobody(t *testing.T) {
	at := freeAddress(t)
	for role, says := range map[Role]string{Client: "no answer from " + at.String(),
		Server: "no peer connected to " + at.String()} {
		r := run(t, Spec{Role: role, Token: "x", Address: at, Timeout: 50 * time.Millisecond})
		if !strings.Contains(r.Error, says) {
			t.Errorf("%s: %q", role, r.Error)
		}
	}
}

// TestNoPort checks that a port in use is reported differently from a server without a client.
func TestNoPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := netip.MustParseAddrPort(l.Addr().String())
	r := run(t, Spec{Role: Server, Token: "x", Address: at, Timeout: 50 * time.Millisecond})
	if !r.NoPort || !strings.Contains(r.Error, "listen") {
		t.Errorf("%+v", r)
	}
}

func TestWitness(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/proxyMode" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte("iptables"))
	}))
	defer server.Close()
	mode := server.URL + "/proxyMode"
	r := run(t, Spec{Role: Witness, Timeout: 20 * time.Second,
		Ask: []string{mode, server.URL + "/no", "http://" + freeAddress(t).String(), "\x00"}})
	if len(r.Answers) != 1 || r.Answers[mode] != "iptables" || r.Error != "" {
		t.Errorf("%+v", r)
	}
}

func TestSpecErrors(t *testing.T) {
	good := Spec{Role: Client, Token: "secret", Address: netip.MustParseAddrPort("127.0.0.1:1"), Timeout: time.Second}
	for want, spoil := range map[string]func(*Spec){
		"role is unknown": func(s *Spec) { s.Role = "guest" },
		"the timeout is":  func(s *Spec) { s.Timeout = time.Hour },
		"needs a token":   func(s *Spec) { s.Token = "" },
		"an address":      func(s *Spec) { s.Address = netip.AddrPort{} },
	} {
		s := good
		spoil(&s)
		_, err := Run(t.Context(), s, "test")
		if !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// TestVolumeInReport checks that the report has a volume only if the specification names one.
func TestVolumeInReport(t *testing.T) {
	for _, path := range []string{"", t.TempDir()} {
		r := run(t, Spec{Role: Witness, Timeout: time.Second, Volume: path})
		if (r.Volume != nil) != (path != "") {
			t.Errorf("%q: %+v", path, r.Volume)
		}
	}
}
