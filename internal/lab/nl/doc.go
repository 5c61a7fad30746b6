// Package nl speaks rtnetlink: links, addresses, routes, neighbours and queues. It is the one door to netlink.
//
// The ops of package lab's plans use it. A [Conn] is a socket that belongs to the namespace in which it was opened and
// works there from any thread; it knows links by name and remembers their numbers. Packages that need more of netlink
// add methods here, in a file of their own.
package nl
