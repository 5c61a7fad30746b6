//go:build !linux

package mesh

import (
	"syscall"

	"github.com/knotmeter/knotmeter/internal/result"
)

func transparent(string, string, syscall.RawConn) error {
	return result.NotSupported("the lab needs Linux")
}
