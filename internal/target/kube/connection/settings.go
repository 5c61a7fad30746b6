package connection

import (
	"errors"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/knotmeter/knotmeter/internal/target"
)

// ErrSecret is why the credentials that kubectl takes as flags are refused.
var ErrSecret = errors.New("a secret in a command line can be read by everybody on the machine, and is kept in " +
	"histories and logs; " +
	"put it into a kubeconfig: users[].user.tokenFile, or exec for a program that fetches it")

// Settings have the names and the meaning of kubectl's flags.
var Settings = []target.Setting[Kubeconfig]{
	target.NewSetting(target.Option{Name: "kubeconfig", Example: "FILE", Value: target.File, Field: "kubeconfig",
		Help: "kubeconfig to use, instead of $KUBECONFIG or ~/.kube/config"},
		func(k *Kubeconfig) *string { return &k.File }, target.AnyText),
	{
		Option: target.Option{
			Name: "context", Example: "NAME", Field: "context", Unnamed: true,
			Help: "kubeconfig context of targets that name none",
		},
		Set: (*Kubeconfig).setContext,
	},
	target.NewSetting(target.Option{Name: "cluster", Example: "NAME", Field: "cluster",
		Help: "kubeconfig cluster to use; overrides the context's"},
		func(k *Kubeconfig) *string { return &k.Overrides.Context.Cluster }, target.AnyText),
	target.NewSetting(target.Option{Name: "user", Example: "NAME", Field: "user",
		Help: "kubeconfig user to use; overrides the context's"},
		func(k *Kubeconfig) *string { return &k.Overrides.Context.AuthInfo }, target.AnyText),
	target.NewSetting(target.Option{Name: "as", Example: "NAME", Field: "as", Help: "user to impersonate"},
		func(k *Kubeconfig) *string { return &k.Overrides.AuthInfo.Impersonate }, target.AnyText),
	target.NewSetting(target.Option{
		Name: "as-group", Example: "NAME,…", Value: target.List, Field: "asGroups", Help: "groups to impersonate"},
		func(k *Kubeconfig) *[]string { return &k.Overrides.AuthInfo.ImpersonateGroups }, parseList),
	target.NewSetting(target.Option{Name: "as-uid", Example: "UID", Field: "asUID", Help: "UID to impersonate"},
		func(k *Kubeconfig) *string { return &k.Overrides.AuthInfo.ImpersonateUID }, target.AnyText),
	target.NewSetting(target.Option{Name: "server", Example: "URL", Short: "s", Field: "server",
		Help: "URL of the API server; overrides the cluster's"},
		func(k *Kubeconfig) *string { return &k.Overrides.ClusterInfo.Server }, target.AnyText),
	target.NewSetting(target.Option{Name: "tls-server-name", Example: "NAME", Field: "tlsServerName",
		Help: "name in the API server's certificate, if it is not the one in its URL"},
		func(k *Kubeconfig) *string { return &k.Overrides.ClusterInfo.TLSServerName }, target.AnyText),
	target.NewSetting(target.Option{
		Name: "certificate-authority", Example: "FILE", Value: target.File, Field: "certificateAuthority",
		Help: "CA certificate file for the API server"},
		func(k *Kubeconfig) *string { return &k.Overrides.ClusterInfo.CertificateAuthority }, target.AnyText),
	target.NewSetting(target.Option{
		Name: "insecure-skip-tls-verify", Example: "yes", Value: target.Switch, Field: "insecureSkipTLSVerify",
		Help: "do not check the API server's certificate"},
		func(k *Kubeconfig) *bool { return &k.Overrides.ClusterInfo.InsecureSkipTLSVerify }, target.YesOrNo),
	target.NewSetting(target.Option{
		Name: "client-certificate", Example: "FILE", Value: target.File, Field: "clientCertificate",
		Help: "client certificate file for TLS"},
		func(k *Kubeconfig) *string { return &k.Overrides.AuthInfo.ClientCertificate }, target.AnyText),
	target.NewSetting(target.Option{Name: "client-key", Example: "FILE", Value: target.File, Field: "clientKey",
		Help: "client key file for TLS"},
		func(k *Kubeconfig) *string { return &k.Overrides.AuthInfo.ClientKey }, target.AnyText),
	target.NewSetting(target.Option{
		Name: "disable-compression", Example: "yes", Value: target.Switch, Field: "disableCompression",
		Help: "ask the API server not to compress its answers"},
		func(k *Kubeconfig) *bool { return &k.Overrides.ClusterInfo.DisableCompression }, target.YesOrNo),
	target.NewSetting(target.Option{Name: "request-timeout", Example: "0", Field: "requestTimeout",
		Help: "timeout of a single request to the API server, such as 30s; 0 is none"},
		func(k *Kubeconfig) *string { return &k.Overrides.Timeout }, target.TextThat(checkTimeout)),
	{Option: target.Option{Name: "token", Refused: ErrSecret}},
	{Option: target.Option{Name: "username", Refused: ErrSecret}},
	{Option: target.Option{Name: "password", Refused: ErrSecret}},
}

func (k *Kubeconfig) setContext(name string) error {
	if k.Context != "" {
		return fmt.Errorf("the target names the context %s already", k.Context)
	}
	k.Context = name
	return nil
}

func parseList(value string) ([]string, error) { return target.SplitList(value), nil }

func checkTimeout(value string) error {
	_, err := clientcmd.ParseTimeout(value)
	return err
}
