//go:build linux

package netns

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/result"
)

// ESPKeySize is the size of a key for [SA] in bytes: of AES-128, and four bytes of salt (RFC 4106, section 8.1).
const ESPKeySize = 16 + 4

// The algorithm of all security associations: AES-GCM with a tag of 16 bytes.
const (
	espAlgorithm = "rfc4106(gcm(aes))"
	espTagBits   = 128
	// replayWindow is the size of the replay window in packets. It is Cilium's, since many CPUs may reorder that many
	// packets.
	replayWindow = 1024
)

// An XFRM is a socket to the IPsec configuration of one namespace. It is not safe for concurrent use.
type XFRM struct{ handle *netlink.Handle }

// OpenXFRM opens an XFRM in the namespace of the calling thread, which the caller must have locked. The error Is
// result.ErrNotSupported if the kernel has no such sockets.
func OpenXFRM() (*XFRM, error) {
	h, err := netlink.NewHandle(unix.NETLINK_XFRM)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil, result.NotSupported("this kernel has no configuration of IPsec (CONFIG_XFRM_USER)")
	}
	if err != nil {
		return nil, fmt.Errorf("open an XFRM socket: %w", err)
	}
	return &XFRM{h}, nil
}

// Close closes the socket, which otherwise holds its namespace. It returns nil.
func (x *XFRM) Close() error {
	x.handle.Close()
	return nil
}

// An SA is a security association: ESP from one node to another. ReqID connects it with the policies that use it.
type SA struct {
	Src, Dst netip.Addr
	SPI      uint32 // at least 256
	ReqID    int
	Tunnel   bool // tunnel mode; false: transport mode
}

// AddSA adds a security association without limits of bytes or time. key has ESPKeySize bytes. The error Is
// result.ErrNotSupported if the kernel has no ESP.
func (x *XFRM) AddSA(s SA, key []byte) error {
	err := x.handle.XfrmStateAdd(&netlink.XfrmState{
		Src: s.Src.AsSlice(), Dst: s.Dst.AsSlice(), Proto: netlink.XFRM_PROTO_ESP, Mode: xfrmMode(s.Tunnel),
		Spi: int(s.SPI), Reqid: s.ReqID, ESN: true, ReplayWindow: replayWindow,
		Aead: &netlink.XfrmStateAlgo{Name: espAlgorithm, Key: key, ICVLen: espTagBits},
	})
	// The kernel looks up the algorithm first. CONFIG_XFRM_ESP selects AES-GCM, so a kernel without the algorithm has no
	// ESP.
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOENT) {
		if s.Dst.Is6() {
			return result.NotSupported("this kernel has no ESP for IPv6 (CONFIG_INET6_ESP)")
		}
		return result.NotSupported("this kernel has no ESP (CONFIG_INET_ESP)")
	}
	return err
}

func xfrmMode(tunnel bool) netlink.Mode {
	if tunnel {
		return netlink.XFRM_MODE_TUNNEL
	}
	return netlink.XFRM_MODE_TRANSPORT
}

// Directions of a Policy: packets that the namespace sends, receives for itself, and forwards.
const (
	PolicyOut = "out"
	PolicyIn  = "in"
	PolicyFwd = "fwd"
)

// A Policy makes packets between two networks use security associations. Such packets are dropped if they arrive
// without one.
type Policy struct {
	Dir      string // PolicyOut, PolicyIn, PolicyFwd
	Src, Dst netip.Prefix
	UDPPort  uint16 // destination port of UDP; 0: all protocols
	SA       SA     // template; its SPI is not used
}

var directions = map[string]netlink.Dir{
	PolicyOut: netlink.XFRM_DIR_OUT, PolicyIn: netlink.XFRM_DIR_IN, PolicyFwd: netlink.XFRM_DIR_FWD,
}

// AddPolicy adds a policy.
func (x *XFRM) AddPolicy(p Policy) error {
	direction, ok := directions[p.Dir]
	if !ok {
		return fmt.Errorf("there is no direction %q", p.Dir)
	}
	policy := &netlink.XfrmPolicy{
		Src: ipnet(p.Src), Dst: ipnet(p.Dst), Dir: direction,
		Tmpls: []netlink.XfrmPolicyTmpl{{
			Src: p.SA.Src.AsSlice(), Dst: p.SA.Dst.AsSlice(), Proto: netlink.XFRM_PROTO_ESP,
			Mode: xfrmMode(p.SA.Tunnel), Reqid: p.SA.ReqID,
		}},
	}
	if p.UDPPort != 0 {
		policy.Proto, policy.DstPort = unix.IPPROTO_UDP, int(p.UDPPort)
	}
	return x.handle.XfrmPolicyAdd(policy)
}

// Packets returns how many packets the security associations to (rx) and from (tx) the addresses have carried.
func (x *XFRM) Packets(own []netip.Addr) (rx, tx uint64, err error) {
	states, err := x.handle.XfrmStateList(netlink.FAMILY_ALL)
	if err != nil {
		return 0, 0, fmt.Errorf("list the security associations: %w", err)
	}
	for _, s := range states {
		for _, a := range own {
			if s.Dst.Equal(a.AsSlice()) {
				rx += s.Statistics.Packets
			}
			if s.Src.Equal(a.AsSlice()) {
				tx += s.Statistics.Packets
			}
		}
	}
	return rx, tx, nil
}
