package kube

import (
	"k8s.io/client-go/kubernetes"
)

// sccGroup is the API of OpenShift's security context constraints.
const sccGroup = "security.openshift.io"

// assignsUsers says whether the cluster itself gives pods their user and their groups, by its namespaces' ranges. Who may not
// ask what APIs there are is taken for somebody on a cluster that does not.
func assignsUsers(api kubernetes.Interface) bool {
	groups, err := api.Discovery().ServerGroups()
	if err != nil {
		return false
	}
	for _, g := range groups.Groups {
		if g.Name == sccGroup {
			return true
		}
	}
	return false
}
