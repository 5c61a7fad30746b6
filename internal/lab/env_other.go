//go:build !linux

package lab

import "github.com/knotmeter/knotmeter/internal/result"

// NeedsLinux is the reason why there is no lab on this system.
const NeedsLinux = result.NotSupported("the lab needs Linux: its nodes are network namespaces")

// An Env is the environment of an Op. It exists on Linux only.
type Env struct{}

// Hold returns NeedsLinux.
func Hold(Kit) error { return NeedsLinux }
