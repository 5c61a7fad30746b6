package audit

import (
	"strings"

	"github.com/knotmeter/knotmeter/internal/metric"
)

// meshRules find traffic that passes by the mesh it was meant for.
var meshRules = []Rule{
	{Name: "outside-mesh", Severity: Warning, checkRun: outsideMesh,
		About: "No datagrams or pings are measured between pods whose TCP connections a service mesh takes over.",
		Why: "Istio, Linkerd and Cilium's ztunnel take over TCP alone: everything else passes by the proxies, and the mesh " +
			"does not encrypt it.",
		More: "docs.cilium.io, Ztunnel Transparent Encryption, Limitations"},
}

// outsideMesh recognises datagrams and pings by their loss, which no workload of TCP has. A table may have no loss.
func outsideMesh(r measuredRun) (found []Finding, checked int) {
	if !r.ThroughMesh() {
		return nil, 0
	}
	_, datagrams := r.Value(metric.Loss)
	if datagrams || published(r.Run) && strings.HasPrefix(r.planned.Workload, "udp-") {
		found = append(found, Finding{Metric: metric.Loss,
			Saw: "Datagrams or pings between pods whose TCP connections alone a mesh takes over."})
	}
	return found, 1
}
