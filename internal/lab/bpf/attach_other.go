//go:build !linux

package bpf

import "github.com/knotmeter/knotmeter/internal/result"

const notLinux = result.NotSupported("eBPF needs Linux")

// An Attachment is programs at work.
type Attachment struct{}

// Close detaches the programs.
func (*Attachment) Close() error { return nil }

// Counters are what the tunnel has carried since it was attached.
func (*Attachment) Counters() (Counters, error) { return Counters{}, notLinux }

// AttachTunnel is not supported.
func AttachTunnel(Tunnel, int) (*Attachment, error) { return nil, notLinux }

// attachServices is not supported.
func attachServices(string, []Service) (*Attachment, error) { return nil, notLinux }
