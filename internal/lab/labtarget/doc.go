// Package labtarget makes the embedded lab a target: lab:<datapath>, with options.
//
// It parses the text of a target, asks package lab for sites, which a separate process makes, turns their hosts into
// pairs, and adds the facts of this machine.
package labtarget
