//go:build !linux

package wireguard

import (
	"io"

	"github.com/knotmeter/knotmeter/internal/result"
)

// Command is the hidden subcommand of this program that is [Serve].
const Command = "lab-wireguard"

// Serve is not supported.
func Serve([]string, io.Reader, io.Writer) error {
	return result.NotSupported("the lab needs Linux")
}
