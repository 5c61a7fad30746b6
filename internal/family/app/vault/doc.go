// Package vault is HashiCorp Vault as an application that is measured: what is asked of its transit engine, the mount
// and the key that a run has for itself, what is watched meanwhile, and how a cluster of it is begun.
//
// Targets read with it where Vault is and what lets a client in; the agent, beside Vault, makes the mount, hands the
// requests to the generator of package web, and takes the mount away again.
package vault

import "errors"

// ErrVault is what every error about a Vault that can't be measured as it is, is.
var ErrVault = errors.New("vault")
