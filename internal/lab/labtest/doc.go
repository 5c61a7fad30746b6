// Package labtest is what the tests of labs share: network namespaces, traffic between them, and what a killed
// program has left on a machine. Only tests import it.
package labtest
