// Package nft makes Services in the way of kube-proxy's nftables mode: a map from the address and port of each Service
// to its endpoint, looked up where packets enter a node and where its processes send. It is the one door to nftables.
//
// It gives package lab a [Services], whose steps come last in a plan.
package nft
