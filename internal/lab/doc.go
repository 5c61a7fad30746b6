// Package lab runs the embedded lab: nodes and pods are network namespaces on this machine, joined by a virtual switch,
// and a datapath carries their packets as a CNI product would.
//
// Package lab/labtarget makes it a target. A [Topology] and a [Datapath] give a [Plan], which is text that can be read
// and compared; only the holder, a separate process, applies it to the kernel:
//
//	Topology -> Datapath.Plan -> Plan -> holder: apply, check -> Site
//
// The holder is PID 1 of a process ID namespace. It holds the network namespaces by file descriptors only, so that the
// kernel removes everything when it ends for any reason. Nothing has a name outside of the lab, and this machine's own
// network is not changed.
package lab
