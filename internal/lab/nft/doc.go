// Package nft translates Services as kube-proxy's nftables mode does: a map from the address and port of each Service
// to those of its endpoint, applied to packets that enter a node or that its processes send. It also adds the packet
// loss and the unused rules of a topology. No other package uses nftables.
//
// [Extend] is for a lab.Services, whose steps come last in a plan.
package nft
