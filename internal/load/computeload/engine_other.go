//go:build !linux

package computeload

import (
	"context"

	"github.com/knotmeter/knotmeter/internal/result"
)

// Run returns result.ErrNotSupported: it pins threads and reads the accounting of Linux.
func Run(context.Context, Config) (Report, error) {
	return Report{}, result.NotSupported("computations are measured on Linux")
}

// ReadCPUs returns result.ErrNotSupported: it reads the accounting of Linux.
func ReadCPUs() (Reading, error) {
	return Reading{}, result.NotSupported("computations are measured on Linux")
}
