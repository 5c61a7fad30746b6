//go:build !linux

package wireguard

import (
	"io"

	"github.com/knotmeter/knotmeter/internal/result"
)

// Command is the hidden subcommand that runs [Serve].
const Command = "lab-wireguard"

// Serve returns an error, since labs need Linux.
func Serve([]string, io.Reader, io.Writer) error {
	return result.NotSupported("the lab needs Linux")
}
