// Package faults holds the tests of whole experiments on a real cluster under which something goes wrong: a node or the
// API server goes down, pods are evicted, connections are cut, a disk is full, rights are taken away, the program is
// killed. What was measured before must stay readable, the program must say what happened, the experiment must be able
// to go on, and nothing may be left on the cluster. It has no code of its own.
//
// KNOTMETER_E2E_KUBECONFIG names the kubeconfig of a cluster of test/cluster on this machine, KNOTMETER_E2E_CLUSTER the
// program that made it and KNOTMETER_E2E_PROGRAM the program under test, which is built if it is not given.
// KNOTMETER_SOAK is for how long faults are repeated at random moments.
package faults
