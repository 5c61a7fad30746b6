// Package labtarget is the embedded lab as a target: lab:<datapath>, with its options.
//
// It stands between the runner, which asks for places, and package lab, which makes them in a process of its own. It
// reads the text of a target, turns a site into a pair of hosts, and tells the facts of this machine.
package labtarget
