// Package kube implements targets that are Kubernetes clusters: kube:<context>, with options.
//
// It chooses nodes, claims the cluster by a Lease, opens and closes the sites that the runner asks for, and removes
// leftovers of interrupted experiments. It talks only to the cluster's API server. These packages do the rest:
//
//	manifest    objects to send to the API server (pure)
//	inspection  objects to facts (pure)
//	diagnosis   objects and errors to sentences (pure)
//	cluster     kubeconfig, retries, watches, commands in pods, rights and accounts
//	volumes     storage classes, claims and their volumes
//	site        the pods and Services of a block, the connections between them, the agent in images without it, and the
//	            Vault deployed for a block
//
// Only this package and these use the Kubernetes client.
package kube
