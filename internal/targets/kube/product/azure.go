package product

// azure is AKS with Azure's managed disks and virtual machines.
func azure() Product {
	return Product{
		Name: "AKS", NodeMark: "kubernetes.azure.com/cluster",
		Provisioners:       []string{"disk.csi.azure.com", "kubernetes.io/azure-disk"},
		Limit:              azureLimit,
		ConfidentialLabels: []string{"kubernetes.azure.com/security-type=ConfidentialVM"},
		Machines:           azureMachines(),
	}
}

// azureCNI is the CNI plugin of AKS.
func azureCNI() Product {
	return Product{Name: "azure", Images: []string{"azure-cni", "azure-cns"}, Carries: true}
}

// A tier is a size of Azure's managed disks; a volume gets the smallest one that holds it.
type tier struct {
	gib, iops, rate float64 // rate in MiB/s (Standard) or MB/s (Premium)
}

// azureLimit returns the limit of a disk, from the tables of Standard and Premium SSD sizes.
func azureLimit(_ string, p Parameters, size int64) (VolumeLimit, bool) {
	standard := []tier{{4, 120, 25}, {8, 120, 25}, {16, 120, 25}, {32, 120, 25},
		{64, 240, 50}, {128, 500, 60}, {256, 500, 60}, {512, 500, 60}, {1024, 500, 60},
		{2048, 500, 60}, {4096, 500, 60}, {8192, 2000, 400}, {16384, 4000, 600}, {32767, 6000, 750}}
	premium := []tier{{4, 120, 25}, {8, 120, 25}, {16, 120, 25}, {32, 120, 25},
		{64, 240, 50}, {128, 500, 100}, {256, 1100, 125}, {512, 2300, 150}, {1024, 5000, 200},
		{2048, 7500, 250}, {4096, 7500, 250}, {8192, 16000, 500}, {16384, 18000, 750}, {32767, 20000, 900}}
	tiers, unit := standard, float64(mib)
	l := VolumeLimit{Note: "smaller disks go above it for a while on credit",
		Source: "Microsoft, azure-docs, includes/disk-storage-standard-ssd-sizes.md of 2019-03-28 (commit 1b5f3038b)"}
	switch p.get("skuname", "storageaccounttype") {
	case "standardssd_lrs", "standardssd_zrs":
	case "premium_lrs", "premium_zrs":
		tiers, unit = premium, mb
		l.Source = "Microsoft, azure-docs, includes/disk-storage-premium-ssd-sizes.md of 2023-03-16 (commit 1d25717f1)"
	default:
		return VolumeLimit{}, false
	}
	for _, t := range tiers {
		if float64(size) <= t.gib*gib {
			l.IOPS, l.Bytes = t.iops, t.rate*unit
			return l, true
		}
	}
	return VolumeLimit{}, false
}

// azureMachines returns the sizes that the published studies used, and the other sizes on the same pages.
func azureMachines() []MachineSize {
	const docs = "Microsoft, azure-compute-docs, articles/virtual-machines/sizes/general-purpose/"
	const das, dcas = docs + "dasv5-series.md of 2026-03-10 (commit 2072bfd70)",
		docs + "dcasv5-series.md of 2026-03-10 (commit 2072bfd70)"
	dasv5 := &SizeSeries{das, das, "the VM goes above it for up to 30 minutes on credit"}
	dcasv5 := &SizeSeries{dcas + "; a report of 2023 quotes 1.25 Gbit/s for DC4as_v5", dcas,
		"the page of 2021 had higher rates in MB/s for some sizes, such as 144 for DC4as_v5"}
	return []MachineSize{
		{"Standard_D2as_v5", 12500, 3750, 82, dasv5}, {"Standard_D4as_v5", 12500, 6400, 144, dasv5},
		{"Standard_D8as_v5", 12500, 12800, 200, dasv5}, {"Standard_D16as_v5", 12500, 25600, 384, dasv5},
		{"Standard_D32as_v5", 16000, 51200, 768, dasv5}, {"Standard_D48as_v5", 24000, 76800, 1152, dasv5},
		{"Standard_D64as_v5", 32000, 80000, 1200, dasv5}, {"Standard_D96as_v5", 40000, 80000, 1600, dasv5},
		{"Standard_DC2as_v5", 3000, 3750, 48, dcasv5}, {"Standard_DC4as_v5", 5000, 6400, 96, dcasv5},
		{"Standard_DC8as_v5", 5000, 12800, 192, dcasv5}, {"Standard_DC16as_v5", 10000, 25600, 384, dcasv5},
		{"Standard_DC32as_v5", 12500, 51200, 768, dcasv5}, {"Standard_DC48as_v5", 15000, 76800, 1152, dcasv5},
		{"Standard_DC64as_v5", 20000, 80000, 1200, dcasv5}, {"Standard_DC96as_v5", 20000, 80000, 1200, dcasv5},
	}
}
