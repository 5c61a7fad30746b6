// Package kube implements targets that are Kubernetes clusters: kube:<context>, with options.
//
// It chooses nodes, claims the cluster, and opens and closes the sites that the runner asks for. It talks only to the
// cluster's API server. These packages do the rest:
//
//	manifest    objects to send to the API server (pure)
//	inspection  objects to facts (pure)
//	diagnosis   objects and errors to sentences (pure)
//	cluster     kubeconfig, retries, watches, commands in pods, rights and accounts
//	volumes     storage classes, claims and their volumes
//	site        the pods and Services of a block, the connections between them, and the agent in images without it
//	vault       the Vault deployed for a block
//	cleanup     experiments that use the cluster, and leftovers of runs and experiments
//
// Only this package and these use the Kubernetes client.
package kube
