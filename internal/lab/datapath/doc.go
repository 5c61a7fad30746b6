// Package datapath holds what labs are built from: the datapaths, each a topology's way to a plan, the Services, and
// the features of the kernel that they need. [Kit] is the table of them.
//
// The datapaths are pure: they write plans, which package lab applies. Most are of two kinds: routed, where nodes route
// between their pods over the underlay or over tunnels on top of it, and direct, where pods are on the underlay.
package datapath
