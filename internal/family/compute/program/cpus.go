package program

import (
	"context"
	"fmt"

	"github.com/knotmeter/knotmeter/internal/family/compute"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
)

// numberOfCPUs returns how many CPUs a run of w uses on a host.
func numberOfCPUs(_ context.Context, h host.Host, w compute.Workload) (int, error) {
	if n := w.CPUs.Number(); n > 0 {
		return n, nil
	}
	return 0, result.NotSupported(fmt.Sprintf("how many CPUs %s has is not known: give their number, cpus=2", h.Name()))
}
