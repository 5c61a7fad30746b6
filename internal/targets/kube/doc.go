// Package kube is any Kubernetes cluster as a target: kube:<context>, with its options.
//
// It stands between the runner, which asks for sites, and the cluster's API server, which is all that it talks to. It
// chooses nodes, claims the cluster, and opens and closes sites; the rooms below it do the rest, and each can be read
// alone:
//
//	manifest    what is sent to the API server (pure)
//	inspection  objects to facts (pure)
//	diagnosis   objects and errors to sentences (pure)
//	watching    waiting for pods, nodes, claims, and for what is to go
//	connection  kubeconfig, retries, commands in pods
//	access      rights and accounts
//	volumes     classes, claims and their volumes
//	site        the pods and Services of a block, in groups, the ways between them, and the agent put into other images
//	vault       the Vault that is deployed for a block
//	cleanup     which experiments use the cluster, and what runs and experiments left
//
// They are the only door to the Kubernetes client.
package kube
