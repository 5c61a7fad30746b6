// Package vault measures HashiCorp Vault: it creates a transit mount and a key for each run, sends the requests,
// watches the replicas meanwhile, and initializes a Vault that was deployed.
//
// Targets use it to find a Vault and its credentials. The agent next to Vault creates the mount, passes the requests to
// the generator (httpload), and removes the mount.
package vault

import "errors"

// ErrVault is wrapped by every error about a Vault that cannot be measured in its present state.
var ErrVault = errors.New("vault")
