// Command vault runs HashiCorp Vault as its own main does, compiled from Go modules, for end-to-end tests.
package main

import (
	"os"

	"github.com/hashicorp/vault/command"
)

func main() {
	os.Exit(command.Run(os.Args[1:]))
}
