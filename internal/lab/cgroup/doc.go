// Package cgroup makes the control groups of the lab's sites and removes what is left of them. Nothing
// is limited by them: they are how eBPF programs are told which processes they are for.
//
// A group is a directory, and so the one thing of the lab that has a name outside and survives a
// killed holder. Therefore a living holder has its groups locked, and marks them as made by this program: whoever gets
// the lock of a marked group may remove it. What only has such a name, as a unit of systemd may, is never touched.
package cgroup

// Prefix begins the name of every group that we make.
const Prefix = "knotmeter-"

// Mark is the extended attribute of every group that we make. Groups below it do not inherit it.
const Mark = "user.knotmeter"
