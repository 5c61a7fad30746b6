package product

import (
	"math"
	"testing"

	"github.com/knotmeter/knotmeter/internal/unit"
)

func TestLimitOf(t *testing.T) {
	for _, c := range []struct {
		provisioner, key, value string
		gib                     int64
		iops, bytes             float64 // 0: unknown
	}{
		{"ebs.csi.aws.com", "type", "gp3", 400, 3000, 125 << 20},
		{"ebs.csi.aws.com", "iops", "6000", 400, 6000, 125 << 20},
		{"ebs.csi.aws.com", "Throughput", "500", 400, 3000, 500 << 20},
		{"ebs.csi.aws.com", "type", "gp2", 400, 1200, 250 << 20},
		{"ebs.csi.aws.com", "type", "gp2", 10, 100, 250 << 20},
		{"ebs.csi.aws.com", "type", "io2", 400, 0, 0},
		{"ebs.csi.aws.com", "iopsPerGB", "50", 400, 0, 0},
		{"kubernetes.io/aws-ebs", "type", "gp2", 400, 1200, 250 << 20},
		{"kubernetes.io/aws-ebs", "fsType", "ext4", 400, 0, 0},                   // gp2 or gp3, depending on Kubernetes
		{"disk.csi.azure.com", "skuName", "StandardSSD_LRS", 400, 500, 60 << 20}, // an E20, as in Constellation v2.6
		{"disk.csi.azure.com", "storageaccounttype", "Premium_LRS", 512, 2300, 150e6},
		{"disk.csi.azure.com", "skuName", "Premium_LRS", 40000, 0, 0},
		{"disk.csi.azure.com", "skuName", "UltraSSD_LRS", 512, 0, 0},
		{"pd.csi.storage.gke.io", "type", "pd-balanced", 400, 2400, 112 << 20}, // as the same report quotes it
		{"pd.csi.storage.gke.io", "type", "hyperdisk-balanced", 400, 0, 0},
		{"rancher.io/local-path", "type", "gp3", 400, 0, 0},
		{"ebs.csi.aws.com", "type", "gp3", 0, 0, 0},
		// Constellation's drivers, which wrap those above.
		{"azuredisk.csi.confidential.cloud", "skuName", "StandardSSD_LRS", 400, 500, 60 << 20},
		{"gcp.csi.confidential.cloud", "type", "pd-balanced", 400, 2400, 112 << 20},
	} {
		l, known := LimitOf(c.provisioner, map[string]string{c.key: c.value}, c.gib<<30)
		if known != (c.iops > 0) || math.Abs(l.IOPS-c.iops) > 1e-6 ||
			math.Abs(l.Bytes-c.bytes) > 1 || known && l.Source == "" {
			t.Errorf("%s %s=%s %d GiB: %+v, %t", c.provisioner, c.key, c.value, c.gib, l, known)
		}
		if !known {
			continue
		}
		facts := l.Facts()
		iops, u, err := unit.Parse(facts[0].Value)
		if err != nil || u != unit.PerSecond || math.Abs(iops-c.iops) > 1 {
			t.Errorf("%+v: %v", facts[0], err)
		}
		bits, u, err := unit.Parse(facts[1].Value)
		if err != nil || u != unit.BitPerSecond || math.Abs(bits-8*c.bytes) > 1 {
			t.Errorf("%+v: %v", facts[1], err)
		}
	}
}

// TestRegionalDisk checks that the limits of zonal disks are not given for a regional disk.
func TestRegionalDisk(t *testing.T) {
	regional := map[string]string{"type": "pd-ssd", "replication-type": "regional-pd"}
	if l, known := LimitOf("pd.csi.storage.gke.io", regional, 400<<30); known {
		t.Errorf("%+v", l)
	}
}
