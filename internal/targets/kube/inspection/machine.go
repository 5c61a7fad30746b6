package inspection

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A machineSize holds the documented limits of a size of virtual machine. The machine sustains no more, whatever its
// disks and its peers could do.
type machineSize struct {
	name   string
	link   float64 // Mbit/s of the network
	iops   float64 // operations a second of all disks together, without a cache of the host
	disks  float64 // MB/s of all disks together
	series *series
}

// A series is a group of machine sizes that one page documents.
type series struct {
	link  string // source of the network rate
	disks string // source of the disk limits
	note  string // caveat of the disk limits; may be empty
}

const computeDocs = "Microsoft, azure-compute-docs, articles/virtual-machines/sizes/general-purpose/"

// machines returns the machine sizes that the published studies used, and the other sizes on the same pages.
func machines() []machineSize {
	const das, dcas = computeDocs + "dasv5-series.md of 2026-03-10 (commit 2072bfd70)",
		computeDocs + "dcasv5-series.md of 2026-03-10 (commit 2072bfd70)"
	dasv5 := &series{das, das, "the VM goes above it for up to 30 minutes on credit"}
	dcasv5 := &series{dcas + "; a report of 2023 quotes 1.25 Gbit/s for DC4as_v5", dcas,
		"the page of 2021 had higher rates in MB/s for some sizes, such as 144 for DC4as_v5"}
	const quoted = "Google Cloud, as the Constellation v2.6 report of 2023 quotes it"
	n2d := &series{quoted + " (cloud.google.com/compute/docs/general-purpose-machines#n2d_machines)",
		quoted + " (cloud.google.com/compute/docs/disks/performance#n2d_vms)",
		"of pd-balanced; for reads the report quotes 3000 operations a second"}
	return []machineSize{
		{"Standard_D2as_v5", 12500, 3750, 82, dasv5}, {"Standard_D4as_v5", 12500, 6400, 144, dasv5},
		{"Standard_D8as_v5", 12500, 12800, 200, dasv5}, {"Standard_D16as_v5", 12500, 25600, 384, dasv5},
		{"Standard_D32as_v5", 16000, 51200, 768, dasv5}, {"Standard_D48as_v5", 24000, 76800, 1152, dasv5},
		{"Standard_D64as_v5", 32000, 80000, 1200, dasv5}, {"Standard_D96as_v5", 40000, 80000, 1600, dasv5},
		{"Standard_DC2as_v5", 3000, 3750, 48, dcasv5}, {"Standard_DC4as_v5", 5000, 6400, 96, dcasv5},
		{"Standard_DC8as_v5", 5000, 12800, 192, dcasv5}, {"Standard_DC16as_v5", 10000, 25600, 384, dcasv5},
		{"Standard_DC32as_v5", 12500, 51200, 768, dcasv5}, {"Standard_DC48as_v5", 15000, 76800, 1152, dcasv5},
		{"Standard_DC64as_v5", 20000, 80000, 1200, dcasv5}, {"Standard_DC96as_v5", 20000, 80000, 1200, dcasv5},
		{"n2d-standard-4", 10000, 15000, 240, n2d},
	}
}

// machineFacts returns the limits of the nodes' machine size; none if the nodes have several sizes, or one without
// figures.
func machineFacts(nodes []corev1.Node) []result.Fact {
	var name string
	for _, n := range nodes {
		size := n.Labels[corev1.LabelInstanceTypeStable]
		if size == "" || size != cmp.Or(name, size) {
			return nil
		}
		name = size
	}
	all := machines()
	i := slices.IndexFunc(all, func(m machineSize) bool { return m.name == name })
	if i < 0 {
		return nil
	}
	m := all[i]
	facts := []result.Fact{
		{Name: "vm-link-rate", Value: fmt.Sprintf("%.0f Mbit/s", m.link)},
		{Name: "vm-link-source", Value: m.series.link},
		{Name: "vm-limit-iops", Value: fmt.Sprintf("%.0f/s", m.iops)},
		{Name: "vm-limit-throughput", Value: fmt.Sprintf("%.0f MB/s", m.disks)},
		{Name: "vm-limit-source", Value: m.series.disks},
	}
	if m.series.note != "" {
		facts = append(facts, result.Fact{Name: "vm-limit-note", Value: m.series.note})
	}
	return facts
}
