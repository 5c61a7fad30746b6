package kube

import (
	"errors"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/knotmeter/knotmeter/internal/target"
	conn "github.com/knotmeter/knotmeter/internal/target/kube/connection"
)

// errSecret is why the credentials that kubectl takes as flags are refused.
var errSecret = errors.New("a secret in a command line can be read by everybody on the machine, and is kept in histories and logs; " +
	"put it into a kubeconfig: users[].user.tokenFile, or exec for a program that fetches it")

// A connection is what the options say about the way to the API server.
type connection struct {
	context, kubeconfig string
	overrides           clientcmd.ConfigOverrides
}

// connectionSettings have the names and the meaning of kubectl's flags.
var connectionSettings = []target.Setting[connection]{
	target.NewSetting(target.Option{
		Name: "kubeconfig", Example: "FILE", Value: target.File, Flag: true, Field: "kubeconfig",
		Help: "kubeconfig to use, instead of $KUBECONFIG or ~/.kube/config",
	}, func(c *connection) *string { return &c.kubeconfig }, target.AnyText),
	{
		Option: target.Option{
			Name: "context", Example: "NAME", Flag: true, Field: "context", Unnamed: true,
			Help: "kubeconfig context of targets that name none",
		},
		Set: (*connection).setContext,
	},
	target.NewSetting(target.Option{
		Name: "cluster", Example: "NAME", Flag: true, Field: "cluster",
		Help: "kubeconfig cluster to use; overrides the context's",
	}, func(c *connection) *string { return &c.overrides.Context.Cluster }, target.AnyText),
	target.NewSetting(target.Option{
		Name: "user", Example: "NAME", Flag: true, Field: "user",
		Help: "kubeconfig user to use; overrides the context's",
	}, func(c *connection) *string { return &c.overrides.Context.AuthInfo }, target.AnyText),
	target.NewSetting(target.Option{
		Name: "as", Example: "NAME", Flag: true, Field: "as", Help: "user to impersonate",
	}, func(c *connection) *string { return &c.overrides.AuthInfo.Impersonate }, target.AnyText),
	target.NewSetting(target.Option{
		Name: "as-group", Example: "NAME,…", Value: target.List, Flag: true, Field: "asGroups", Help: "groups to impersonate",
	}, func(c *connection) *[]string { return &c.overrides.AuthInfo.ImpersonateGroups }, parseList),
	target.NewSetting(target.Option{
		Name: "as-uid", Example: "UID", Flag: true, Field: "asUID", Help: "UID to impersonate",
	}, func(c *connection) *string { return &c.overrides.AuthInfo.ImpersonateUID }, target.AnyText),
	target.NewSetting(target.Option{
		Name: "server", Example: "URL", Flag: true, Short: "s", Field: "server",
		Help: "URL of the API server; overrides the cluster's",
	}, func(c *connection) *string { return &c.overrides.ClusterInfo.Server }, target.AnyText),
	target.NewSetting(target.Option{
		Name: "tls-server-name", Example: "NAME", Flag: true, Field: "tlsServerName",
		Help: "name in the API server's certificate, if it is not the one in its URL",
	}, func(c *connection) *string { return &c.overrides.ClusterInfo.TLSServerName }, target.AnyText),
	target.NewSetting(target.Option{
		Name: "certificate-authority", Example: "FILE", Value: target.File, Flag: true, Field: "certificateAuthority",
		Help: "CA certificate file for the API server",
	}, func(c *connection) *string { return &c.overrides.ClusterInfo.CertificateAuthority }, target.AnyText),
	target.NewSetting(target.Option{
		Name: "insecure-skip-tls-verify", Example: "yes", Value: target.Switch, Flag: true, Field: "insecureSkipTLSVerify",
		Help: "do not check the API server's certificate",
	}, func(c *connection) *bool { return &c.overrides.ClusterInfo.InsecureSkipTLSVerify }, target.YesOrNo),
	target.NewSetting(target.Option{
		Name: "client-certificate", Example: "FILE", Value: target.File, Flag: true, Field: "clientCertificate",
		Help: "client certificate file for TLS",
	}, func(c *connection) *string { return &c.overrides.AuthInfo.ClientCertificate }, target.AnyText),
	target.NewSetting(target.Option{
		Name: "client-key", Example: "FILE", Value: target.File, Flag: true, Field: "clientKey",
		Help: "client key file for TLS",
	}, func(c *connection) *string { return &c.overrides.AuthInfo.ClientKey }, target.AnyText),
	target.NewSetting(target.Option{
		Name: "disable-compression", Example: "yes", Value: target.Switch, Flag: true, Field: "disableCompression",
		Help: "ask the API server not to compress its answers",
	}, func(c *connection) *bool { return &c.overrides.ClusterInfo.DisableCompression }, target.YesOrNo),
	target.NewSetting(target.Option{
		Name: "request-timeout", Example: "0", Flag: true, Field: "requestTimeout",
		Help: "timeout of a single request to the API server, such as 30s; 0 is none",
	}, func(c *connection) *string { return &c.overrides.Timeout }, target.TextThat(checkTimeout)),
	{Option: target.Option{Name: "token", Flag: true, Refused: errSecret}},
	{Option: target.Option{Name: "username", Flag: true, Refused: errSecret}},
	{Option: target.Option{Name: "password", Flag: true, Refused: errSecret}},
}

func (c *connection) setContext(name string) error {
	if c.context != "" {
		return fmt.Errorf("the target names the context %s already", c.context)
	}
	c.context = name
	return nil
}

func parseList(value string) ([]string, error) { return target.SplitList(value), nil }

func checkTimeout(value string) error {
	_, err := clientcmd.ParseTimeout(value)
	return err
}

// way is the connection as a kubeconfig.
func (c connection) way() conn.Kubeconfig {
	return conn.Kubeconfig{File: c.kubeconfig, Context: c.context, Overrides: c.overrides}
}
