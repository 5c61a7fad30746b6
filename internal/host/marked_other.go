//go:build unix && !linux

package host

import "context"

// KillMarked does nothing here: the environment of other processes cannot be read.
func KillMarked(context.Context, string) error { return nil }
