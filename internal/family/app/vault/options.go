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

// Name is that of the application, and of the option of targets that says where it is.
const Name = "vault"

// Settings are the options of targets about a Vault that is there.
func Settings() []target.Setting[Instance] { return given }

// DeploySettings are the options of targets that deploy a Vault too.
func DeploySettings() []target.Setting[Instance] { return givenOrDeployed }

var given = append([]target.Setting[Instance]{{
	Option: target.Option{
		Name: Name, Example: "URL", Help: "the Vault to ask, such as https://vault.example:8200 (default: $VAULT_ADDR)",
	},
	Set: (*Instance).set,
}}, access...)

var givenOrDeployed = slices.Concat([]target.Setting[Instance]{{
	Option: target.Option{
		Name: Name, Example: target.Deploy,
		Help: "deploy a Vault for each block, or the URL of one that is there (default: $VAULT_ADDR)",
	},
	Set: (*Instance).set,
}}, access, deployment)

// access is how to reach a Vault that is there.
var access = []target.Setting[Instance]{
	target.NewSetting(target.Option{
		Name: "vault-addresses", Example: "HOST:PORT,…",
		Help: "addresses of the replicas, asked in turn (default: the URL's)",
	}, func(i *Instance) *[]string { return &i.Addresses }, parseAddresses),
	target.NewSetting(target.Option{
		Name: "vault-ask", Example: "all", Help: "which replicas to ask: all, or leader",
	}, func(i *Instance) *bool { return &i.Leader }, target.Choice("all", "leader")),
	target.NewSetting(target.Option{
		Name: "vault-ca", Example: "FILE", Value: target.File, Help: "CA certificate file for Vault (default: $VAULT_CACERT)",
	}, func(i *Instance) *string { return &i.CAFile }, target.AnyText),
	target.NewSetting(target.Option{
		Name: "vault-token-file", Example: "FILE", Value: target.File,
		Help: "file with Vault's token (default: $VAULT_TOKEN, then ~/.vault-token)",
	}, func(i *Instance) *string { return &i.TokenFile }, target.AnyText),
	target.NewSetting(target.Option{
		Name: "vault-namespace", Example: "NAME", Help: "namespace of Vault (default: $VAULT_NAMESPACE)",
	}, func(i *Instance) *string { return &i.Namespace }, target.AnyText),
}

// deployment is how a Vault is deployed.
var deployment = []target.Setting[Instance]{
	target.NewSetting(target.Option{
		Name: "vault-replicas", Example: "1", Help: "replicas of a Vault that is deployed: 1, 3 or 5", Needs: "vault=deploy",
	}, func(i *Instance) *int { return &i.Replicas }, parseReplicas),
	target.NewSetting(target.Option{
		Name: "vault-image", Example: "REF", Help: "image of a Vault that is deployed (default " + DefaultImage + ")",
		Needs: "vault=deploy",
	}, func(i *Instance) *string { return &i.Image }, target.Image(DefaultImage)),
}

// set reads where Vault is.
func (i *Instance) set(value string) error {
	if i.Deploy = value == target.Deploy; i.Deploy {
		return nil
	}
	i.URL = value
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
