// Command vault is HashiCorp Vault as its own main makes it, compiled from modules: end-to-end tests need a real one.
package main

import (
	"os"

	"github.com/hashicorp/vault/command"
)

func main() {
	os.Exit(command.Run(os.Args[1:]))
}
