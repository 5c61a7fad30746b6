// Package app tests cases of applications end to end: the program itself, as its users start it, against a real Vault
// on this machine, three replicas of it on a real cluster, and a Service there.
package app
