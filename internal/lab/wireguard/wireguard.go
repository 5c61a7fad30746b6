// Package wireguard makes WireGuard devices in the namespaces of the lab's nodes: the kernel's if it has them, else
// wireguard-go as a process in the node's namespace, a child of the holder. Only this package uses either of them, or
// keys.
//
// Keys are made for a site and exist only in the memory of the holder and of its children. They are never printed: the
// child receives them on standard input, not as an argument.
package wireguard

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
)

// Overhead is the most that WireGuard adds to a packet, in bytes: an outer IPv6 header (40), UDP (8), type, receiver
// and counter (16), and the authentication tag (16). wg-quick also subtracts 80 from the MTU for both outer IP
// versions.
const Overhead = 80

// A Key is a private key. Formatting hides it.
type Key struct{ secret *ecdh.PrivateKey }

// NewKey returns a new random key.
func NewKey() (Key, error) {
	secret, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, fmt.Errorf("making a WireGuard key: %w", err)
	}
	return Key{secret}, nil
}

// Public returns the public key for peers.
func (k Key) Public() PublicKey { return PublicKey(k.secret.PublicKey().Bytes()) }

// Format hides the key with every verb.
func (Key) Format(f fmt.State, _ rune) { fmt.Fprint(f, "(hidden)") }

// MarshalText returns an error, so that keys are never marshalled.
func (Key) MarshalText() ([]byte, error) {
	return nil, fmt.Errorf("a WireGuard key is not written anywhere")
}

// A PublicKey identifies a peer.
type PublicKey [32]byte

// A Config is a device's side of a tunnel.
type Config struct {
	Private Key
	Port    uint16 // UDP port on which the device listens
	Peers   []Peer
}

// A Peer is the other side of a tunnel.
type Peer struct {
	Public   PublicKey
	Endpoint netip.AddrPort // address on which the peer listens
	Allowed  []netip.Prefix // destinations sent to it, and sources accepted from it
}

// uapi returns the configuration as a "set" operation of WireGuard's cross-platform protocol (wireguard.com/xplatform),
// with the blank line at its end.
func (c Config) uapi() string {
	var b strings.Builder
	fmt.Fprintf(&b, "private_key=%s\n", hex.EncodeToString(c.Private.secret.Bytes()))
	fmt.Fprintf(&b, "listen_port=%d\nreplace_peers=true\n", c.Port)
	for _, p := range c.Peers {
		fmt.Fprintf(&b, "public_key=%s\nendpoint=%s\nreplace_allowed_ips=true\n", hex.EncodeToString(p.Public[:]), p.Endpoint)
		for _, a := range p.Allowed {
			fmt.Fprintf(&b, "allowed_ip=%s\n", a)
		}
	}
	b.WriteString("\n")
	return b.String()
}
