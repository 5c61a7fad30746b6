// Package paths holds the tests of whole runs on a real cluster: that traffic takes the path that a case's name
// says, seen in the counters of the nodes, and that a run tells as much as one in the lab. It has no code of its own.
//
// They look into the nodes of test/cluster, so they need one on this machine: KNOTMETER_E2E_KUBECONFIG names
// its kubeconfig.
package paths
