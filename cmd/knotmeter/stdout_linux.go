//go:build amd64 || arm64

package main

// fcntlStdout is what fcntl(1, F_GETFD) returned before Go's runtime began, which opens /dev/null in the place of a
// closed standard output. entry sets it, if the program is linked with -E main.entry.
var fcntlStdout int

// entry is the first instruction of the program.
func entry()

// stdoutClosed reports whether the program was started with a closed standard output, as by >&- in a shell.
func stdoutClosed() bool { return fcntlStdout < 0 }
