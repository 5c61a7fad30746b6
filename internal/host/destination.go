package host

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
)

// A Destination is where HTTP requests go, as far as it is known before the first one. The zero value means nowhere.
type Destination struct {
	URL       string
	Addresses []string // host:port of each replica, connected to in turn; empty: the URL's
	Variable  string   // environment variable that has the URL; empty: the user gave the URL
	Secret    bool     // requests carry a token or another secret
}

// Exposed reports whether a secret would leave this machine, or the client's pod, unencrypted.
func (d Destination) Exposed() bool {
	u, err := url.Parse(d.URL)
	if !d.Secret || err != nil || u.Scheme != "http" {
		return false
	}
	hosts := []string{u.Hostname()}
	if len(d.Addresses) > 0 {
		hosts = hosts[:0]
	}
	for _, a := range d.Addresses {
		name, _, _ := net.SplitHostPort(a) // an address that cannot be split is not a loopback address
		hosts = append(hosts, name)
	}
	return slices.ContainsFunc(hosts, func(name string) bool { return !Loopback(name) })
}

// Loopback reports whether name is localhost or a loopback address.
func Loopback(name string) bool {
	address, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && address.Unmap().IsLoopback()
}
