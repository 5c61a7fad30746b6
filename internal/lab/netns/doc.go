// Package netns makes network namespaces, runs code in them, and configures what is in them: links, addresses, routes,
// neighbours, queues and IPsec. It is the one door to unshare, setns and netlink.
//
// Package lab uses it to build the places of the lab. A namespace here has no name: it lives as long as a file
// descriptor, a process or a socket holds it, and the kernel removes it with all its devices after that.
//
// Go moves goroutines between threads, and the network namespace is a thread's, not the process's. So [NS.Do] always
// takes a fresh goroutine, locks it to its thread, and lets a thread that it cannot bring back die with the
// goroutine. For the same reason only /proc/thread-self is right and /proc/self may be another thread. A main
// function should lock its goroutine to the main thread, so that no goroutine of ours ever runs there: the main
// thread cannot be let die, and the whole process would seem to be in its namespace.
package netns
