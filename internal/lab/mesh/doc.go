// Package mesh has the proxies of a mesh that encrypts transparently: one on each node, to which the node redirects the
// TCP connections of its pods, and which carries them to the proxy of the other node over mutual TLS.
//
// It is a stand-in of our own for the node proxies of Istio ambient and Cilium: HTTP/2 CONNECT (HBONE) over TLS
// connections that are kept. It costs what the pattern costs in Go, not what a product costs. It is a child of the
// lab's holder in the namespace of its node. Keys are made for a site and exist only in the memory of these processes.
package mesh
