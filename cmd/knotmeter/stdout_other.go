//go:build !linux || !(amd64 || arm64)

package main

// stdoutClosed reports whether the program was started with a closed standard output, which is not known here.
func stdoutClosed() bool { return false }
