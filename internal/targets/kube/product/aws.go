package product

import (
	"cmp"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/result"
)

// awsDistro is EKS Distro.
func awsDistro() Product { return Product{Name: "EKS Distro", VersionMark: "-eks-1-"} }

// aws is EKS with the volumes of EBS.
func aws() Product {
	return Product{
		Name: "EKS", VersionMark: "-eks-", NodeMark: "eks.amazonaws.com/nodegroup",
		Provisioners: []string{"ebs.csi.aws.com", "kubernetes.io/aws-ebs"}, Limit: ebsLimit,
	}
}

// amazonVPC is the CNI plugin of EKS.
func amazonVPC() Product {
	return Product{
		Name: "amazon-vpc", Images: []string{"amazon-k8s-cni"}, Carries: true,
		Encapsulation: func(e Evidence) []Property {
			if !e.runs("amazon-vpc") {
				return nil
			}
			return []Property{{Value: result.None, Strength: Designed,
				Source: "amazon-vpc has nothing else: pods have addresses of the VPC"}}
		},
	}
}

// ebsLimit returns the limit of a volume of EBS: for gp3 as provisioned, by default 3000 operations and 125 MiB a
// second; for gp2 three operations a second per GiB, from 100 to 16000, and 250 MiB a second.
func ebsLimit(provisioner string, p Parameters, size int64) (VolumeLimit, bool) {
	const source = "AWS, Amazon EBS volume types: general purpose SSD volumes " +
		"(docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html), as other pages quote it"
	kind := p.get("type")
	if provisioner == "ebs.csi.aws.com" { // the default of the one in Kubernetes has changed
		kind = cmp.Or(kind, "gp3")
	}
	switch kind {
	case "gp3":
		if p.get("iopspergb") != "" {
			return VolumeLimit{}, false // the driver decides the resulting rate
		}
		l := VolumeLimit{IOPS: 3000, Bytes: 125 * mib, Source: source}
		if n, err := strconv.ParseFloat(p.get("iops"), 64); err == nil && n > 0 {
			l.IOPS = n
		}
		if n, err := strconv.ParseFloat(p.get("throughput"), 64); err == nil && n > 0 {
			l.Bytes = n * mib
		}
		return l, true
	case "gp2":
		iops := min(max(3*float64(size)/gib, 100), 16000)
		return VolumeLimit{
			IOPS: iops, Bytes: 250 * mib, Source: source,
			Note: "volumes below 1000 GiB reach 3000 operations a second for a while on credit; " +
				"those below 334 GiB have less than 250 MiB a second",
		}, true
	}
	return VolumeLimit{}, false
}
