package product

// googleCloud is GKE with Google Cloud's zonal disks and virtual machines.
func googleCloud() Product {
	const quoted = "Google Cloud, as the Constellation v2.6 report of 2023 quotes it"
	n2d := &SizeSeries{quoted + " (cloud.google.com/compute/docs/general-purpose-machines#n2d_machines)",
		quoted + " (cloud.google.com/compute/docs/disks/performance#n2d_vms)",
		"of pd-balanced; for reads the report quotes 3000 operations a second"}
	return Product{
		Name: "GKE", VersionMark: "-gke.", NodeMark: "cloud.google.com/gke-nodepool",
		Provisioners:       []string{"pd.csi.storage.gke.io", "kubernetes.io/gce-pd"},
		Limit:              googleLimit,
		ConfidentialLabels: []string{"cloud.google.com/gke-confidential-nodes=true"},
		Machines:           []MachineSize{{"n2d-standard-4", 10000, 15000, 240, n2d}},
	}
}

// googleDataplane is Cilium as a part of GKE.
func googleDataplane() Product {
	return Product{Name: "gke-dataplane-v2", Images: []string{"/anetd", "gke.gcr.io/cilium"}}
}

// googleLimit returns the limit of a zonal disk, which is proportional to its size.
func googleLimit(_ string, p Parameters, size int64) (VolumeLimit, bool) {
	per, known := map[string]struct{ iops, mib float64 }{"pd-balanced": {6, 0.28}, "pd-ssd": {30, 0.48}}[p.get("type")]
	if !known || p.get("replication-type") == "regional-pd" {
		return VolumeLimit{}, false
	}
	g := float64(size) / gib
	return VolumeLimit{IOPS: per.iops * g, Bytes: per.mib * g * mib,
		Source: "Google Cloud, persistent disk performance, limits per GiB (cloud.google.com/compute/docs/disks/performance)",
		Note: "Google adds a baseline for each instance, which is not in these figures, " +
			"and bounds them by the machine's type",
	}, true
}
