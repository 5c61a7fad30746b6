package product

// otherDistributions lists the distributions of which no more is known than their marks, and a mark of confidential
// machines of any provider. Node Feature Discovery's labels for SEV are no such mark: they mark hosts that can start
// confidential machines.
var otherDistributions = []Product{
	{Name: "k3s", VersionMark: "+k3s"}, {Name: "RKE2", VersionMark: "+rke2"}, {Name: "k0s", VersionMark: "+k0s"},
	{Name: "TKE", VersionMark: "-tke"}, {Name: "ACK", VersionMark: "-aliyun"},
	{Name: "OpenShift", NodeMark: "node.openshift.io/os_id", UserAssigningGroup: "security.openshift.io"},
	{Name: "MicroK8s", NodeMark: "microk8s.io/cluster"}, {Name: "minikube", NodeMark: "minikube.k8s.io/name"},
	{Name: "DOKS", NodeMark: "doks.digitalocean.com/node-id"},
	{Name: "kind", ProviderMark: "kind"}, {Name: "Talos", OSMark: "Talos"},
	{Name: "Node Feature Discovery",
		ConfidentialLabels: []string{"feature.node.kubernetes.io/cpu-security.tdx.protected=true"}},
}
