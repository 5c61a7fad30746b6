// Package vault holds what Knotmeter knows about HashiCorp Vault as a server: where it is and with which credentials,
// how a deployed one is initialized, the requests of its transit engine, and how to remove what runs left in it.
//
// Targets use it to find or deploy a Vault. The agent next to Vault creates a transit mount and a key for each run,
// passes the requests to the generator (httpload), watches the replicas meanwhile, and removes the mount. Package
// family/app defines what is measured.
package vault

import "errors"

// ErrVault is wrapped by every error about a Vault that cannot be measured in its present state.
var ErrVault = errors.New("vault")
