// Package labtest has helpers for tests of labs: network namespaces, traffic between them, and what a killed program
// has left on a machine. Only tests import it.
package labtest
