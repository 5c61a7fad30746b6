package vault

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// Name is the name of the application, and of the option of targets that gives its URL.
const Name = "vault"

// Settings returns the options of targets for an existing Vault.
func Settings() []targets.Setting[Instance] { return given }

// DeploySettings returns the options of targets that can also deploy a Vault.
func DeploySettings() []targets.Setting[Instance] { return givenOrDeployed }

var given = append([]targets.Setting[Instance]{{
	Option: targets.Option{
		Name: Name, Example: "URL", Help: "the Vault to ask, such as https://vault.example:8200 (default: $VAULT_ADDR)",
	},
	Set: (*Instance).set,
}}, access...)

var givenOrDeployed = slices.Concat([]targets.Setting[Instance]{{
	Option: targets.Option{
		Name: Name, Example: result.Deploy,
		Help: "deploy a Vault for each block, or the URL of one that is there (default: $VAULT_ADDR)",
	},
	Set: (*Instance).set,
}}, access, deployment)

// access holds the options for reaching an existing Vault.
var access = []targets.Setting[Instance]{
	targets.NewSetting(targets.Option{
		Name: "vault-addresses", Example: "HOST:PORT,…",
		Help: "addresses of the replicas, asked in turn (default: the URL's)",
	}, func(i *Instance) *[]string { return &i.Addresses }, parseAddresses),
	targets.NewSetting(targets.Option{
		Name: "vault-ask", Example: "all", Help: "which replicas to ask: all, or leader",
	}, func(i *Instance) *bool { return &i.Leader }, targets.Choice("all", "leader")),
	targets.NewSetting(targets.Option{
		Name: "vault-ca", Example: "FILE", Value: targets.File,
		Help: "CA certificate file for Vault (default: $VAULT_CACERT)",
	}, func(i *Instance) *string { return &i.CAFile }, targets.AnyText),
	targets.NewSetting(targets.Option{
		Name: "vault-token-file", Example: "FILE", Value: targets.File,
		Help: "file with Vault's token (default: $VAULT_TOKEN, then ~/.vault-token)",
	}, func(i *Instance) *string { return &i.TokenFile }, targets.AnyText),
	targets.NewSetting(targets.Option{
		Name: "vault-namespace", Example: "NAME", Help: "namespace of Vault (default: $VAULT_NAMESPACE)",
	}, func(i *Instance) *string { return &i.Namespace }, targets.AnyText),
}

// deployment holds the options for deploying a Vault.
var deployment = []targets.Setting[Instance]{
	targets.NewSetting(targets.Option{
		Name: "vault-replicas", Example: "1", Needs: "vault=deploy",
		Help: "replicas of a Vault that is deployed: 1, 2, 3 or 5",
	}, func(i *Instance) *int { return &i.Replicas }, parseReplicas),
	targets.NewSetting(targets.Option{
		Name: "vault-image", Example: "REF", Help: "image of a Vault that is deployed (default " + DefaultImage + ")",
		Needs: "vault=deploy",
	}, func(i *Instance) *string { return &i.Image }, targets.Image(DefaultImage)),
	targets.NewSetting(targets.Option{
		Name: "vault-cpu", Example: "2", Needs: "vault=deploy",
		Help: "CPUs of each replica of a Vault that is deployed, as its request and limit (default: 100m, no limit)",
	}, func(i *Instance) *string { return &i.CPU }, targets.CheckedText(checkCPU)),
	targets.NewSetting(targets.Option{
		Name: "vault-memory", Example: "8Gi", Needs: "vault=deploy",
		Help: "memory of each replica of a Vault that is deployed, as its request and limit (default: 256Mi, up to 2Gi)",
	}, func(i *Instance) *string { return &i.Memory }, targets.CheckedText(checkMemory)),
	targets.NewSetting(targets.Option{
		Name: "vault-storage-class", Example: "NAME", Needs: "vault=deploy",
		Help: "storage class of a volume of size= for each replica of a Vault that is deployed (default: none, its data is " +
			"on the nodes' own disks)",
	}, func(i *Instance) *string { return &i.StorageClass }, targets.CheckedText(checkClass)),
}

var (
	cpus   = regexp.MustCompile(`^([1-9][0-9]{0,2}|[1-9][0-9]{2,5}m)$`)
	class  = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	memory = regexp.MustCompile(`^([1-9][0-9]{0,3}Gi|[1-9][0-9]{2,6}Mi)$`)
)

func checkCPU(value string) error {
	if !cpus.MatchString(value) {
		return errors.New("it is a number of CPUs from 100m to 999, as Kubernetes writes it, such as 2 or 1500m")
	}
	return nil
}

func checkClass(value string) error {
	if !class.MatchString(value) {
		return errors.New("it is the name of a storage class: lower-case letters, digits, dots and dashes")
	}
	return nil
}

func checkMemory(value string) error {
	if !memory.MatchString(value) {
		return errors.New("it is a size from 100Mi on, as Kubernetes writes it, such as 8Gi")
	}
	return nil
}

// set sets the URL of an existing Vault, or Deploy.
func (i *Instance) set(value string) error {
	if i.Deploy = value == result.Deploy; i.Deploy {
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
	if err != nil || !slices.Contains([]int{1, 2, 3, 5}, n) {
		return 0, errors.New("it is 1, 2, 3 or 5; only with 3 or 5 is there a majority when one is lost")
	}
	return n, nil
}
