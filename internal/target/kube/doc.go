// Package kube is any Kubernetes cluster as a target: kube:<context>, with its options.
//
// It stands between the runner, which asks for places, and the cluster's API server, which is all that it
// talks to. A site is two fresh pods, for node paths in the network of their nodes, and a Service where the
// path has one. What is sent to the API server is made by pure functions (manifest.go, nodes.go) and the
// evidence it gives is judged by pure functions (diagnose.go, evidence.go, nodes.go); the rest carries it
// there and back. It is the only door to the Kubernetes client.
package kube
