package product

// constellation is Edgeless Systems' distribution. Its drivers create the disks of the drivers that they wrap, with the
// same parameters, and encrypt them.
func constellation() Product {
	const azureDisk, googleDisk = "azuredisk.csi.confidential.cloud", "gcp.csi.confidential.cloud"
	return Product{
		Name: "Constellation", NodeMark: "constellation.edgeless.systems/scaling-group-id", OSMark: "Constellation",
		Provisioners: []string{azureDisk, googleDisk},
		Limit: func(provisioner string, p Parameters, size int64) (VolumeLimit, bool) {
			if provisioner == azureDisk {
				return azureLimit(provisioner, p, size)
			}
			return googleLimit(provisioner, p, size)
		},
	}
}
