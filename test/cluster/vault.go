//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
)

// vaultImage is what the image of a real Vault is called on the nodes.
const vaultImage = "knotmeter.local/vault:1"

// vault is a program of its own: it takes long to compile, and only tests of applications want it. Vault's own tag for
// builds without the plug-ins of clouds and databases leaves transit and Raft, and halves that time.
func vault() program { return program{name: "vault", module: "vault", source: ".", tags: "minimal"} }

// buildVault compiles Vault if the cache does not have this one, and prints where the program and its image are.
func buildVault(ctx context.Context, s spec) error {
	unlock, err := s.lockCache(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	stamp, err := vault().stamp(sourceDir())
	if err != nil {
		return err
	}
	image := s.program("vault.tar")
	_, missing := os.Stat(image)
	if !vault().built(s, stamp) || missing != nil {
		if err := s.makeVault(ctx, stamp, image); err != nil {
			return err
		}
	}
	fmt.Println(s.program("vault"))
	fmt.Println(image)
	return nil
}

func (s spec) makeVault(ctx context.Context, stamp, image string) error {
	fmt.Fprintln(os.Stderr, "building vault, which takes some minutes")
	if err := vault().build(ctx, s); err != nil {
		return fmt.Errorf("build vault: %w", err)
	}
	text, err := os.ReadFile(s.program("vault"))
	if err != nil {
		return err
	}
	if err := writeImage(image, vaultImage, []string{"/bin/vault"}, map[string][]byte{"bin/vault": text}); err != nil {
		return err
	}
	return writeNew(s.program("vault")+".from", []byte(stamp), 0o644)
}
