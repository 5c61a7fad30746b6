package vault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// An Instance is a target's Vault, as its options describe it: one at an address, or one deployed for each block.
// Without options it is the Vault that Vault's own command line finds in the environment.
type Instance struct {
	URL       string
	Addresses []string // host:port of each replica
	Leader    bool     // measure the leader only
	CAFile    string
	TokenFile string
	Namespace string

	Deploy   bool
	Replicas int
	Image    string
	// CPU and Memory of each deployed replica, in Kubernetes' notation; empty: the manifest's.
	CPU, Memory string
	// StorageClass is the class of the volume of each deployed replica; empty: no volumes.
	StorageClass string
}

// DefaultImage is deployed if the option vault-image is not given.
const DefaultImage = "docker.io/hashicorp/vault:1.21"

// Check sets the defaults of a deployment, and returns an error if options contradict each other.
func (i *Instance) Check() error {
	switch {
	case i.Deploy && (len(i.Addresses) > 0 || i.CAFile != "" || i.TokenFile != "" || i.Namespace != ""):
		return errors.New("vault=deploy makes a Vault of its own: vault-addresses=, vault-ca=, vault-token-file= and " +
			"vault-namespace= are about one that is there")
	case i.Deploy:
		i.Replicas, i.Image = max(i.Replicas, 1), cmp.Or(i.Image, DefaultImage)
	}
	return nil
}

// Rights returns what deploying the Vault takes in addition to pods: its configuration and its TLS key are a Secret,
// which is never read.
func (i Instance) Rights() []targets.Right {
	if !i.Deploy {
		return nil
	}
	return []targets.Right{{Resource: "secrets", Verbs: []string{"create", "delete"}}}
}

func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
		u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" {
		return errors.New("it is http://HOST:PORT or https://HOST:PORT, without path, user or password")
	}
	return nil
}

// A Machine gives access to the environment and files that describe a Vault.
type Machine struct {
	Getenv   func(string) string
	ReadFile func(string) ([]byte, error)
	Home     func() (string, error)
}

// Here returns the machine that this program runs on.
func Here() Machine {
	return Machine{Getenv: os.Getenv, ReadFile: os.ReadFile, Home: os.UserHomeDir}
}

// addressVariable is the environment variable with Vault's URL if no option gives one.
const addressVariable = "VAULT_ADDR"

// Destination returns where requests to an existing Vault go; zero without one, or if Vault is deployed. It reads no
// files.
func (i Instance) Destination(m Machine) host.Destination {
	d := host.Destination{URL: i.URL, Addresses: i.Addresses, Secret: true}
	switch {
	case i.Deploy:
		return host.Destination{}
	case i.URL == "":
		d.URL, d.Variable = m.Getenv(addressVariable), addressVariable
	}
	if d.URL == "" {
		return host.Destination{}
	}
	return d
}

// Applications returns the destination of an existing Vault by its [Name], or nil.
func (i Instance) Applications(m Machine) map[string]host.Destination {
	if to := i.Destination(m); to.URL != "" {
		return map[string]host.Destination{Name: to}
	}
	return nil
}

// Endpoint returns an existing Vault with its credentials, as Vault's own command line would find them. If there is
// none, the error wraps result.ErrNotSupported.
func (i Instance) Endpoint(m Machine) (host.Endpoint, error) {
	e := host.Endpoint{URL: i.Destination(m).URL, Addresses: i.Addresses,
		Leader: i.Leader, Namespace: cmp.Or(i.Namespace, m.Getenv("VAULT_NAMESPACE"))}
	if e.URL == "" {
		return e, result.NotSupported("no Vault is given: name one with the option vault=URL or by the environment's " +
			"VAULT_ADDR")
	}
	if err := checkURL(e.URL); err != nil {
		return e, fmt.Errorf("%w: VAULT_ADDR=%q: %w", ErrVault, e.URL, err)
	}
	for _, name := range []string{"VAULT_SKIP_VERIFY", "VAULT_CAPATH", "VAULT_PROXY_ADDR"} {
		if v := m.Getenv(name); v != "" && v != "false" && v != "0" {
			return e, result.NotSupported(name + " is set, which Knotmeter does not do; give the certificate's authority with " +
				"VAULT_CACERT or vault-ca=, and Vault's own address")
		}
	}
	if err := i.readCertificates(m, &e); err != nil {
		return e, err
	}
	err := i.readToken(m, &e)
	return withServerName(e, m.Getenv("VAULT_TLS_SERVER_NAME")), err
}

// Supports returns nil for a placement without an application, or with Vault if one exists or is deployed. Every error
// wraps result.ErrNotSupported.
func (i Instance) Supports(m Machine, p targets.Placement) error {
	switch {
	case p.Application == "" || p.Application == Name && i.Deploy:
		return nil
	case p.Application != Name:
		return result.NotSupported("the target knows no application " + p.Application)
	}
	_, err := i.Endpoint(m)
	if err != nil && !errors.Is(err, result.ErrNotSupported) {
		err = result.NotSupported(err.Error())
	}
	return err
}

// readCertificates reads the CA certificate and the client's certificate and key, as far as they are given.
func (i Instance) readCertificates(m Machine, e *host.Endpoint) (err error) {
	for _, f := range []struct {
		name string
		into *[]byte
	}{{cmp.Or(i.CAFile, m.Getenv("VAULT_CACERT")), &e.CA}, {m.Getenv("VAULT_CLIENT_CERT"), &e.Secret.Cert},
		{m.Getenv("VAULT_CLIENT_KEY"), &e.Secret.Key}} {
		if f.name == "" {
			continue
		}
		if *f.into, err = m.ReadFile(f.name); err != nil {
			return fmt.Errorf("%w: %w", ErrVault, err)
		}
	}
	return nil
}

// withServerName returns the endpoint with name as the host of its URL, which the certificate must match; connections
// still go to the previous host.
func withServerName(e host.Endpoint, name string) host.Endpoint {
	u, err := url.Parse(e.URL)
	if name == "" || err != nil || u.Scheme != "https" {
		return e
	}
	port := cmp.Or(u.Port(), "443")
	if len(e.Addresses) == 0 {
		e.Addresses = []string{net.JoinHostPort(u.Hostname(), port)}
	}
	e.URL = "https://" + net.JoinHostPort(name, port)
	return e
}

// readToken reads the token from the option's file, the environment, or the file that `vault login` writes, in this
// order.
func (i Instance) readToken(m Machine, e *host.Endpoint) error {
	file, given := i.TokenFile, i.TokenFile != ""
	if !given {
		if e.Secret.Token = m.Getenv("VAULT_TOKEN"); e.Secret.Token != "" {
			return checkToken(e.Secret.Token, "VAULT_TOKEN")
		}
		home, err := m.Home()
		if err != nil {
			return fmt.Errorf("%w: VAULT_TOKEN is not set: %w", ErrVault, err)
		}
		file = filepath.Join(home, ".vault-token")
	}
	text, err := m.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && !given {
		return fmt.Errorf("%w: no token: set VAULT_TOKEN, give vault-token-file=, or run 'vault login'", ErrVault)
	}
	if err != nil {
		return fmt.Errorf("%w: the token: %w", ErrVault, err)
	}
	e.Secret.Token = strings.TrimSpace(string(text))
	return checkToken(e.Secret.Token, file)
}

func checkToken(token, from string) error {
	if token == "" || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return fmt.Errorf("%w: what %s holds is no token", ErrVault, from)
	}
	return nil
}

// A Cleaner removes what runs left at an endpoint, and returns the names of what it removed.
type Cleaner func(context.Context, host.Endpoint) ([]string, error)

// Clean removes what runs left in the Vault that the options or the environment name. It does nothing without a Vault,
// for one that is deployed for each block, and for an environment without a usable Vault (no token, for example), where
// no run can have taken place. If no Vault answers this machine, it calls elsewhere to clean from another place, unless
// elsewhere is nil.
func (i Instance) Clean(ctx context.Context, m Machine, how targets.Cleaning, elsewhere Cleaner) ([]string, error) {
	if i.Destination(m).URL == "" {
		return nil, nil
	}
	e, err := i.Endpoint(m)
	if err != nil && i.URL == "" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	removed, err := Clean(ctx, e, how)
	if errors.Is(err, ErrNoAnswer) && elsewhere != nil {
		var there error
		if removed, there = elsewhere(ctx, e); there == nil {
			return removed, nil
		}
		err = errors.Join(err, there)
	}
	if err != nil {
		err = fmt.Errorf("what runs left in the Vault at %s: %w", e.URL, err)
	}
	return removed, err
}
