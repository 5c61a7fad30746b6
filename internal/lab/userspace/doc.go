// Package userspace runs parts of a node that are not in the kernel, such as a tunnel or a proxy: this program again,
// as a child of the lab's holder in the node's network namespace.
package userspace
