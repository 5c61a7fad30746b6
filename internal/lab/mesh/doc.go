// Package mesh has the proxies of a mesh that encrypts transparently: one on each node, to which the node redirects the
// TCP connections of its pods, and which carries them to the proxy of the other node over mutual TLS.
//
// There are two. HBONE is a stand-in of our own for the node proxies of Istio ambient and Cilium: HTTP/2 CONNECT over
// TLS connections that are kept. It costs what the pattern costs in Go, not what a product costs. The other is HAProxy
// as a distribution packages it, with a TLS connection for each connection of a pod.
//
// Both are children of the lab's holder in the namespace of their node. Keys are made for a site and exist only in the
// memory of these processes.
package mesh
