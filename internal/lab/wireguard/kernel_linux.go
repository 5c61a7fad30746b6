package wireguard

import (
	"errors"
	"fmt"
	"net"

	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
)

// configureKernel configures the kernel's device in the network namespace of the calling thread.
func configureKernel(name string, c Config) error {
	client, err := wgctrl.New()
	if err != nil {
		return fmt.Errorf("asking the kernel for WireGuard: %w", err)
	}
	err = client.ConfigureDevice(name, c.kernelConfig())
	if err != nil {
		err = fmt.Errorf("configuring %s: %w", name, err)
	}
	return errors.Join(err, client.Close())
}

// kernelConfig returns the configuration for the kernel's interface.
func (c Config) kernelConfig() wgtypes.Config {
	private, port := wgtypes.Key(c.Private.secret.Bytes()), int(c.Port)
	config := wgtypes.Config{PrivateKey: &private, ListenPort: &port, ReplacePeers: true}
	for _, p := range c.Peers {
		peer := wgtypes.PeerConfig{
			PublicKey:         wgtypes.Key(p.Public),
			Endpoint:          net.UDPAddrFromAddrPort(p.Endpoint),
			ReplaceAllowedIPs: true,
		}
		for _, a := range p.Allowed {
			peer.AllowedIPs = append(peer.AllowedIPs, net.IPNet{
				IP: a.Masked().Addr().AsSlice(), Mask: net.CIDRMask(a.Bits(), a.Addr().BitLen()),
			})
		}
		config.Peers = append(config.Peers, peer)
	}
	return config
}
