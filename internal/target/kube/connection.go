package kube

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/knotmeter/knotmeter/internal/target"
)

// Flags are the options that kubectl has as flags, by its names and with its meaning, and what else one wants of all
// clusters at once.
func Flags() []target.Flag {
	return []target.Flag{
		{Name: "kubeconfig", About: "the kubeconfig, instead of $KUBECONFIG or ~/.kube/config"},
		{Name: "context", About: "of the kubeconfig, for targets that name none"},
		{Name: "cluster", About: "of the kubeconfig, instead of the context's"},
		{Name: "user", About: "of the kubeconfig, instead of the context's"},
		{Name: "namespace", Short: "n", Fixed: true, About: "one that exists, instead of one that is made and removed"},
		{Name: "as", About: "the user to impersonate"},
		{Name: "as-group", Takes: target.List, About: "a group to impersonate; repeated"},
		{Name: "as-uid", About: "the UID to impersonate"},
		{Name: "server", Short: "s", About: "the URL of the API server"},
		{Name: "tls-server-name", About: "the name that the API server's certificate is for, where it is not the one in its URL"},
		{Name: "certificate-authority", About: "file with the certificate that the API server's is by"},
		{Name: "insecure-skip-tls-verify", Takes: target.Switch, About: "do not check the API server's certificate"},
		{Name: "client-certificate", About: "file with the client's certificate for TLS"},
		{Name: "client-key", About: "file with its key"},
		{Name: "disable-compression", Takes: target.Switch, About: "ask the API server not to compress its answers"},
		{Name: "request-timeout", About: "of a single request to the API server, such as 30s (default: none)"},
		{Name: "inject", Takes: target.Switch, Fixed: true, About: "put the agent into pods of the image that image= names, which need not have it"},
		{Name: "rotate-nodes", Takes: target.Switch, Fixed: true, About: "another pair of nodes in each block, every node as often as the others"},
	}
}

// SecretFlags are those flags of kubectl that we refuse: a command line can be read by everybody on the machine, and is kept in
// histories and logs.
func SecretFlags() []string { return []string{"token", "username", "password"} }

// ErrSecret is why.
var ErrSecret = errors.New("a secret in a command line can be read by everybody on the machine, and is kept in histories and logs; " +
	"put it into a kubeconfig: users[].user.tokenFile, or exec for a program that fetches it")

// noSecrets refuses credentials as options, without saying them once more.
func noSecrets(spec target.Spec) error {
	for _, name := range SecretFlags() {
		if _, given := spec.Options[name]; given {
			return fmt.Errorf("%w: %s:%s: option %s: %w", target.ErrSpec, spec.Kind, spec.Name, name, ErrSecret)
		}
	}
	return nil
}

// A connection is what the options say about the way to the API server.
type connection struct {
	context, kubeconfig string
	overrides           clientcmd.ConfigOverrides
}

func (c *connection) set(name, text string) (err error) {
	o := &c.overrides
	switch name {
	case "kubeconfig":
		c.kubeconfig = text
	case "context":
		if c.context != "" {
			return fmt.Errorf("the target names the context %s already", c.context)
		}
		c.context = text
	case "cluster":
		o.Context.Cluster = text
	case "user":
		o.Context.AuthInfo = text
	case "as":
		o.AuthInfo.Impersonate = text
	case "as-group":
		o.AuthInfo.ImpersonateGroups = target.SplitList(text)
	case "as-uid":
		o.AuthInfo.ImpersonateUID = text
	case "server":
		o.ClusterInfo.Server = text
	case "tls-server-name":
		o.ClusterInfo.TLSServerName = text
	case "certificate-authority":
		o.ClusterInfo.CertificateAuthority = text
	case "insecure-skip-tls-verify":
		o.ClusterInfo.InsecureSkipTLSVerify, err = choice(text, "no", "yes")
	case "client-certificate":
		o.AuthInfo.ClientCertificate = text
	case "client-key":
		o.AuthInfo.ClientKey = text
	case "disable-compression":
		o.ClusterInfo.DisableCompression, err = choice(text, "no", "yes")
	case "request-timeout":
		_, err = clientcmd.ParseTimeout(text)
		o.Timeout = text
	}
	return err
}

// place says where a kubeconfig is looked for.
func place(rules *clientcmd.ClientConfigLoadingRules) string {
	if rules.ExplicitPath != "" {
		return rules.ExplicitPath
	}
	return strings.Join(rules.Precedence, ":")
}
