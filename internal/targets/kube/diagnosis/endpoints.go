package diagnosis

import (
	"fmt"
	"net/netip"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
)

// OnlyEndpoint returns an error unless want, for TCP and UDP, is the only ready endpoint of a Service. known holds the
// Service's endpoint slices.
func OnlyEndpoint(known map[string]*discoveryv1.EndpointSlice, want netip.AddrPort) error {
	var found []string
	for _, slice := range known {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && !*e.Conditions.Ready {
				continue
			}
			for _, p := range slice.Ports {
				if p.Port == nil || p.Protocol == nil {
					continue
				}
				for _, address := range e.Addresses {
					found = append(found, fmt.Sprintf("%s %s port %d", *p.Protocol, address, *p.Port))
				}
			}
		}
	}
	slices.Sort(found)
	wanted := []string{fmt.Sprintf("TCP %s port %d", want.Addr(), want.Port()),
		fmt.Sprintf("UDP %s port %d", want.Addr(), want.Port())}
	if !slices.Equal(found, wanted) {
		return fmt.Errorf("its endpoints are %s, not %s", inspection.List(found), inspection.List(wanted))
	}
	return nil
}
