//go:build !linux

package lab

// An Env is what an Op works in. There is none but on Linux.
type Env struct{}
