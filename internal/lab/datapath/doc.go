// Package datapath has what labs are built from: the datapaths, each of which turns a topology into a plan, the
// Services, and the kernel features that they need. [Kit] lists them.
//
// Datapaths are pure: they write plans, which package lab applies. Most are of two kinds: in routed ones, nodes route
// between their pods over the underlay or over tunnels on top of it; in direct ones, pods are on the underlay.
package datapath
