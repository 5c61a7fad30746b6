//go:build !linux

package lab

import "github.com/knotmeter/knotmeter/internal/result"

// NeedsLinux is why there is no lab here.
const NeedsLinux = result.NotSupported("the lab needs Linux: its nodes are network namespaces")

// An Env is what an Op works in. There is none but on Linux.
type Env struct{}

// Hold says that there is nothing to hold.
func Hold(Kit) error { return NeedsLinux }
