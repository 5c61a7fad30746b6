// Package cgroup makes the control groups of the lab's sites and removes leftover ones. They limit nothing: eBPF
// programs are attached to them, to apply to the processes of one site.
//
// A group is a directory. It is the only thing of the lab that has a name outside and survives a killed holder.
// Therefore a holder locks its groups and marks them as made by this program: a process that gets the lock of a marked
// group may remove it. A group that only has such a name, such as a systemd unit, is never touched.
package cgroup

// Prefix is the beginning of the name of every group of this program.
const Prefix = "knotmeter-"

// Mark is the extended attribute of every group of this program. Groups below it do not inherit it.
const Mark = "user.knotmeter"
