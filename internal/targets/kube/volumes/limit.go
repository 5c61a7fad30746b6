package volumes

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A limit is the documented sustained performance of a volume, with its source. A burst on credit exceeds it, which the
// audit reports.
type limit struct {
	IOPS   float64 // operations a second
	Bytes  float64 // bytes a second
	Source string
	Note   string // caveat of the figures; may be empty
}

const (
	mib = 1 << 20
	mb  = 1e6
	gib = 1 << 30
)

// limitOf returns the limit of a volume of size bytes, for a provisioner and the parameters of a storage class. known
// is false if there are no figures. Constellation's drivers create the disks of the drivers that they wrap, with the
// same parameters, and encrypt them.
func limitOf(provisioner string, parameters map[string]string, size int64) (l limit, known bool) {
	get := func(keys ...string) string {
		for key, value := range parameters {
			for _, k := range keys {
				if strings.EqualFold(key, k) {
					return strings.ToLower(value)
				}
			}
		}
		return ""
	}
	if size <= 0 {
		return limit{}, false
	}
	switch provisioner {
	case "ebs.csi.aws.com":
		return ebs(cmp.Or(get("type"), "gp3"), get, size) // the driver's default
	case "kubernetes.io/aws-ebs":
		return ebs(get("type"), get, size) // its default has changed
	case "disk.csi.azure.com", "kubernetes.io/azure-disk", "azuredisk.csi.confidential.cloud":
		return azure(get("skuname", "storageaccounttype"), size)
	case "pd.csi.storage.gke.io", "kubernetes.io/gce-pd", "gcp.csi.confidential.cloud":
		if get("replication-type") == "regional-pd" {
			return limit{}, false // the figures are for zonal disks
		}
		return persistentDisk(get("type"), size)
	}
	return limit{}, false
}

// ebs returns the limit of an AWS volume: for gp3 as provisioned, by default 3000 operations and 125 MiB a second; for
// gp2 three operations a second per GiB, from 100 to 16000, and 250 MiB a second.
func ebs(kind string, get func(...string) string, size int64) (limit, bool) {
	const source = "AWS, Amazon EBS volume types: general purpose SSD volumes " +
		"(docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html), as other pages quote it"
	switch kind {
	case "gp3":
		if get("iopspergb") != "" {
			return limit{}, false // the driver decides the resulting rate
		}
		l := limit{IOPS: 3000, Bytes: 125 * mib, Source: source}
		if n, err := strconv.ParseFloat(get("iops"), 64); err == nil && n > 0 {
			l.IOPS = n
		}
		if n, err := strconv.ParseFloat(get("throughput"), 64); err == nil && n > 0 {
			l.Bytes = n * mib
		}
		return l, true
	case "gp2":
		iops := min(max(3*float64(size)/gib, 100), 16000)
		return limit{
			IOPS: iops, Bytes: 250 * mib, Source: source,
			Note: "volumes below 1000 GiB reach 3000 operations a second for a while on credit; " +
				"those below 334 GiB have less than 250 MiB a second",
		}, true
	}
	return limit{}, false
}

// A tier is a size of Azure's managed disks; a volume gets the smallest one that holds it.
type tier struct {
	gib, iops, rate float64 // rate in MiB/s (Standard) or MB/s (Premium)
}

// azure returns the limit of an Azure disk, from the tables of Standard and Premium SSD sizes.
func azure(sku string, size int64) (limit, bool) {
	standard := []tier{{4, 120, 25}, {8, 120, 25}, {16, 120, 25}, {32, 120, 25},
		{64, 240, 50}, {128, 500, 60}, {256, 500, 60}, {512, 500, 60}, {1024, 500, 60},
		{2048, 500, 60}, {4096, 500, 60}, {8192, 2000, 400}, {16384, 4000, 600}, {32767, 6000, 750}}
	premium := []tier{{4, 120, 25}, {8, 120, 25}, {16, 120, 25}, {32, 120, 25},
		{64, 240, 50}, {128, 500, 100}, {256, 1100, 125}, {512, 2300, 150}, {1024, 5000, 200},
		{2048, 7500, 250}, {4096, 7500, 250}, {8192, 16000, 500}, {16384, 18000, 750}, {32767, 20000, 900}}
	const docs, burst = "Microsoft, azure-docs, includes/", "smaller disks go above it for a while on credit"
	switch sku {
	case "standardssd_lrs", "standardssd_zrs":
		source := docs + "disk-storage-standard-ssd-sizes.md of 2019-03-28 (commit 1b5f3038b)"
		return tiered(standard, size, mib, limit{Source: source, Note: burst})
	case "premium_lrs", "premium_zrs":
		source := docs + "disk-storage-premium-ssd-sizes.md of 2023-03-16 (commit 1d25717f1)"
		return tiered(premium, size, mb, limit{Source: source, Note: burst})
	}
	return limit{}, false
}

// tiered returns l with the limits of the smallest tier that holds size bytes; unit is that of rate, in bytes a second.
func tiered(tiers []tier, size int64, unit float64, l limit) (limit, bool) {
	for _, t := range tiers {
		if float64(size) <= t.gib*gib {
			l.IOPS, l.Bytes = t.iops, t.rate*unit
			return l, true
		}
	}
	return limit{}, false
}

// persistentDisk returns the limit of a zonal Google Cloud disk, which is proportional to its size.
func persistentDisk(kind string, size int64) (limit, bool) {
	per := map[string]struct{ iops, mib float64 }{"pd-balanced": {6, 0.28}, "pd-ssd": {30, 0.48}}
	p, known := per[kind]
	if !known {
		return limit{}, false
	}
	g := float64(size) / gib
	return limit{IOPS: p.iops * g, Bytes: p.mib * g * mib,
		Source: "Google Cloud, persistent disk performance, limits per GiB (cloud.google.com/compute/docs/disks/performance)",
		Note: "Google adds a baseline for each instance, which is not in these figures, " +
			"and bounds them by the machine's type",
	}, true
}

// Facts returns the limit as facts of a target.
func (l limit) Facts() []result.Fact {
	facts := []result.Fact{
		{Name: "limit-iops", Value: fmt.Sprintf("%.0f/s", l.IOPS)},
		{Name: "limit-throughput", Value: fmt.Sprintf("%.0f bit/s", 8*l.Bytes)},
		{Name: "limit-source", Value: l.Source},
	}
	if l.Note != "" {
		facts = append(facts, result.Fact{Name: "limit-note", Value: l.Note})
	}
	return facts
}
