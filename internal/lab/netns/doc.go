// Package netns makes network namespaces, runs code in them, and configures them: links, addresses, routes, neighbours,
// queues and IPsec. It is the only package of the lab that uses unshare, setns and rtnetlink.
//
// Package lab builds its sites with it. The namespaces have no names: one exists as long as a file descriptor, a
// process or a socket holds it, and the kernel removes it with all its devices afterwards.
//
// The network namespace belongs to a thread, not to the process, and Go moves goroutines between threads. So [NS.Do]
// starts a new goroutine, locks it to its thread, and lets a thread that cannot return to its namespace end with the
// goroutine. For the same reason code must read /proc/thread-self, since /proc/self may refer to another thread. A main
// function should lock its goroutine to the main thread so that no other goroutine runs there: the main thread cannot
// be ended, and the whole process would appear to be in its namespace.
package netns
