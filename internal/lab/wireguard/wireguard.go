// Package wireguard makes WireGuard devices in the namespaces of the lab's nodes: the kernel's where it has them, else
// wireguard-go as a process beside the node, a child of the holder. It is the one door to both, and to keys.
//
// Keys are made for a site and live in the memory of the holder and of its children. They are printed
// nowhere: the child gets them through its standard input, never as an argument.
package wireguard

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
)

// Overhead is what WireGuard adds to a packet at most, in bytes: an outer IPv6 header (40), UDP (8), type, receiver
// and counter (16), the authentication tag (16). 80 is what wg-quick takes off the MTU too, whatever the outer family.
const Overhead = 80

// A Key is a private key. Its String hides it.
type Key struct{ secret *ecdh.PrivateKey }

// NewKey makes a key.
func NewKey() (Key, error) {
	secret, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, fmt.Errorf("making a WireGuard key: %w", err)
	}
	return Key{secret}, nil
}

// Public is the key that peers know it by.
func (k Key) Public() PublicKey { return PublicKey(k.secret.PublicKey().Bytes()) }

// Format hides the key under every verb.
func (Key) Format(f fmt.State, _ rune) { fmt.Fprint(f, "(hidden)") }

// MarshalText is an error: keys are not written anywhere.
func (Key) MarshalText() ([]byte, error) {
	return nil, fmt.Errorf("a WireGuard key is not written anywhere")
}

// A PublicKey is what a peer is known by.
type PublicKey [32]byte

// A Config is a device's side of a tunnel.
type Config struct {
	Private Key
	Port    uint16 // UDP, where it listens
	Peers   []Peer
}

// A Peer is the other side of a tunnel.
type Peer struct {
	Public   PublicKey
	Endpoint netip.AddrPort // where it listens
	Allowed  []netip.Prefix // what is sent to it, and taken from it
}

// uapi is the configuration as the "set" operation of WireGuard's cross-platform protocol
// (wireguard.com/xplatform), with the blank line that ends it.
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
