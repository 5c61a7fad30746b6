// Package api holds the tests of whole experiments on the API server of a real cluster: from a pod and from this
// machine, and whether targets that are alike are found alike, and one that is 5 % slower is found slower. It has no
// code of its own.
//
// KNOTMETER_E2E_KUBECONFIG names the kubeconfig of a cluster of test/cluster on this machine, and KNOTMETER_E2E_PROGRAM
// the program under test, which is built if it is not given.
package api
