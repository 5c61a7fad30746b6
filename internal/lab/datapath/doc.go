// Package datapath holds what the plans of several datapaths have in common: the underlay, the ways to attach pods, and
// the routes between nodes.
//
// The datapaths themselves are in the packages below, one small directory each. All of this is pure: it writes plans,
// which package lab applies. Two kinds cover all of them: [Routed], where nodes route between their pods over the
// underlay or over tunnels on top of it, and [Direct], where pods are on the underlay themselves.
package datapath
