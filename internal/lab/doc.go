// Package lab is the embedded lab: nodes and pods are network namespaces on this machine, joined by
// a virtual switch, and a datapath carries their packets as one of the products in the field would.
//
// It stands under lab/labtarget in the data flow. A [Topology] and a [Datapath] give a [Plan], which is
// text that can be read and compared; only the holder, a process of its own, applies it to the kernel:
//
//	Topology -> Datapath.Plan -> Plan -> holder: apply, check -> Site
//
// The holder is PID 1 of a process-id namespace, and everything that is made belongs to it: it holds the
// namespaces by file descriptors alone. When it ends, in whatever way, the kernel removes all of it.
// Nothing has a name outside, and this machine's own network is not touched.
package lab
