// Package cgroup makes control groups and removes leftover ones. Those of the lab's sites limit nothing: eBPF programs
// are attached to them, to apply to the processes of one site. Those of local targets limit CPU time.
//
// A group is a directory. Of all that this program makes on a machine, only groups have a name outside of it and
// survive their killed maker. Therefore a maker locks its groups and marks them as made by this program: a process that
// gets the lock of a marked group may remove it. A group that only has such a name, such as a systemd unit, is never
// touched.
package cgroup

// Prefix is the beginning of the name of every group of this program.
const Prefix = "knotmeter-"

// Mark is the extended attribute of every group of this program in the version 2 hierarchy. Groups below it do not
// inherit it. The hierarchies of version 1 have no attributes for users; there it is the one of privileged programs.
const (
	Mark           = "user.knotmeter"
	privilegedMark = "trusted.knotmeter"
)
