package vault

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/target"
)

// Settings are the options of targets about a Vault that is there.
func Settings() []target.Setting[Place] { return given }

// DeploySettings are the options of targets that deploy a Vault too.
func DeploySettings() []target.Setting[Place] { return givenOrDeployed }

var given = append([]target.Setting[Place]{{
	Option: target.Option{
		Name: "vault", Example: "URL", Help: "the Vault to ask, such as https://vault.example:8200 (default: $VAULT_ADDR)",
	},
	Set: (*Place).set,
}}, access...)

var givenOrDeployed = slices.Concat([]target.Setting[Place]{{
	Option: target.Option{
		Name: "vault", Example: "deploy",
		Help: "deploy a Vault for each run, or the URL of one that is there (default: $VAULT_ADDR)",
	},
	Set: (*Place).set,
}}, access, deployment)

// access is how to reach a Vault that is there.
var access = []target.Setting[Place]{
	target.NewSetting(target.Option{
		Name: "vault-addresses", Example: "HOST:PORT,…",
		Help: "addresses of the replicas, asked in turn (default: the URL's)",
	}, func(p *Place) *[]string { return &p.Addresses }, parseAddresses),
	target.NewSetting(target.Option{
		Name: "vault-ask", Example: "all", Help: "which replicas to ask: all, or leader",
	}, func(p *Place) *bool { return &p.Leader }, target.Choice("all", "leader")),
	target.NewSetting(target.Option{
		Name: "vault-ca", Example: "FILE", Value: target.File, Help: "CA certificate file for Vault (default: $VAULT_CACERT)",
	}, func(p *Place) *string { return &p.CAFile }, target.AnyText),
	target.NewSetting(target.Option{
		Name: "vault-token-file", Example: "FILE", Value: target.File,
		Help: "file with Vault's token (default: $VAULT_TOKEN, then ~/.vault-token)",
	}, func(p *Place) *string { return &p.TokenFile }, target.AnyText),
	target.NewSetting(target.Option{
		Name: "vault-namespace", Example: "NAME", Help: "namespace of Vault (default: $VAULT_NAMESPACE)",
	}, func(p *Place) *string { return &p.Namespace }, target.AnyText),
}

// deployment is how a Vault is deployed.
var deployment = []target.Setting[Place]{
	target.NewSetting(target.Option{
		Name: "vault-replicas", Example: "1", Help: "replicas of a Vault that is deployed: 1, 3 or 5", Needs: "vault=deploy",
	}, func(p *Place) *int { return &p.Replicas }, parseReplicas),
	target.NewSetting(target.Option{
		Name: "vault-image", Example: "REF", Help: "image of a Vault that is deployed (default " + DefaultImage + ")",
		Needs: "vault=deploy",
	}, func(p *Place) *string { return &p.Image }, target.Image(DefaultImage)),
}

// set reads where Vault is.
func (p *Place) set(value string) error {
	if p.Deploy = value == "deploy"; p.Deploy {
		return nil
	}
	p.URL = value
	return checkURL(value)
}

func parseAddresses(value string) ([]string, error) {
	list := strings.Split(value, ",")
	for _, a := range list {
		if _, port, err := net.SplitHostPort(a); err != nil || port == "" {
			return nil, fmt.Errorf("%q is not HOST:PORT", a)
		}
	}
	return list, nil
}

func parseReplicas(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || !slices.Contains([]int{1, 3, 5}, n) {
		return 0, errors.New("it is 1, 3 or 5: more than one needs a majority when one is lost")
	}
	return n, nil
}
