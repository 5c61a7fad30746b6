package cluster

import (
	"errors"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/knotmeter/knotmeter/internal/targets"
)

// ErrSecret explains why options refuse the credentials that kubectl takes as flags.
var ErrSecret = errors.New("a secret in a command line can be read by everybody on the machine, and is kept in " +
	"histories and logs; " +
	"put it into a kubeconfig: users[].user.tokenFile, or exec for a program that fetches it")

// Settings are the options of the connection, named after kubectl's flags.
var Settings = []targets.Setting[Kubeconfig]{
	targets.NewSetting(targets.Option{Name: "kubeconfig", Example: "FILE", Value: targets.File, Field: "kubeconfig",
		Help: "kubeconfig to use, instead of $KUBECONFIG or ~/.kube/config"},
		func(k *Kubeconfig) *string { return &k.File }, targets.AnyText),
	{
		Option: targets.Option{
			Name: "context", Example: "NAME", Field: "context",
			Help: "kubeconfig context of targets that name none",
		},
		Set: (*Kubeconfig).setContext,
	},
	targets.NewSetting(targets.Option{Name: "cluster", Example: "NAME", Field: "cluster",
		Help: "kubeconfig cluster to use; overrides the context's"},
		func(k *Kubeconfig) *string { return &k.Overrides.Context.Cluster }, targets.AnyText),
	targets.NewSetting(targets.Option{Name: "user", Example: "NAME", Field: "user",
		Help: "kubeconfig user to use; overrides the context's"},
		func(k *Kubeconfig) *string { return &k.Overrides.Context.AuthInfo }, targets.AnyText),
	targets.NewSetting(targets.Option{Name: "as", Example: "NAME", Field: "as", Help: "user to impersonate"},
		func(k *Kubeconfig) *string { return &k.Overrides.AuthInfo.Impersonate }, targets.AnyText),
	targets.NewSetting(targets.Option{
		Name: "as-group", Example: "NAME,…", Value: targets.List, Field: "asGroups", Help: "groups to impersonate"},
		func(k *Kubeconfig) *[]string { return &k.Overrides.AuthInfo.ImpersonateGroups }, parseList),
	targets.NewSetting(targets.Option{Name: "as-uid", Example: "UID", Field: "asUID", Help: "UID to impersonate"},
		func(k *Kubeconfig) *string { return &k.Overrides.AuthInfo.ImpersonateUID }, targets.AnyText),
	targets.NewSetting(targets.Option{Name: "server", Example: "URL", Field: "server",
		Help: "URL of the API server; overrides the cluster's"},
		func(k *Kubeconfig) *string { return &k.Overrides.ClusterInfo.Server }, targets.AnyText),
	targets.NewSetting(targets.Option{Name: "tls-server-name", Example: "NAME", Field: "tlsServerName",
		Help: "name in the API server's certificate, if it is not the one in its URL"},
		func(k *Kubeconfig) *string { return &k.Overrides.ClusterInfo.TLSServerName }, targets.AnyText),
	targets.NewSetting(targets.Option{
		Name: "certificate-authority", Example: "FILE", Value: targets.File, Field: "certificateAuthority",
		Help: "CA certificate file for the API server"},
		func(k *Kubeconfig) *string { return &k.Overrides.ClusterInfo.CertificateAuthority }, targets.AnyText),
	targets.NewSetting(targets.Option{
		Name: "insecure-skip-tls-verify", Example: "yes", Value: targets.Switch, Field: "insecureSkipTLSVerify",
		Help: "do not check the API server's certificate"},
		func(k *Kubeconfig) *bool { return &k.Overrides.ClusterInfo.InsecureSkipTLSVerify }, targets.YesOrNo),
	targets.NewSetting(targets.Option{
		Name: "client-certificate", Example: "FILE", Value: targets.File, Field: "clientCertificate",
		Help: "client certificate file for TLS"},
		func(k *Kubeconfig) *string { return &k.Overrides.AuthInfo.ClientCertificate }, targets.AnyText),
	targets.NewSetting(targets.Option{Name: "client-key", Example: "FILE", Value: targets.File, Field: "clientKey",
		Help: "client key file for TLS"},
		func(k *Kubeconfig) *string { return &k.Overrides.AuthInfo.ClientKey }, targets.AnyText),
	targets.NewSetting(targets.Option{
		Name: "disable-compression", Example: "yes", Value: targets.Switch, Field: "disableCompression",
		Help: "ask the API server not to compress its answers"},
		func(k *Kubeconfig) *bool { return &k.Overrides.ClusterInfo.DisableCompression }, targets.YesOrNo),
	targets.NewSetting(targets.Option{Name: "request-timeout", Example: "0", Field: "requestTimeout",
		Help: "timeout of a single request to the API server, such as 30s; 0 is none"},
		func(k *Kubeconfig) *string { return &k.Overrides.Timeout }, targets.CheckedText(checkTimeout)),
	{Option: targets.Option{Name: "token", Refused: ErrSecret}},
	{Option: targets.Option{Name: "username", Refused: ErrSecret}},
	{Option: targets.Option{Name: "password", Refused: ErrSecret}},
}

func (k *Kubeconfig) setContext(name string) error {
	if k.Context != "" {
		return fmt.Errorf("the target names the context %s already", k.Context)
	}
	k.Context = name
	return nil
}

func parseList(value string) ([]string, error) { return targets.SplitList(value), nil }

func checkTimeout(value string) error {
	_, err := clientcmd.ParseTimeout(value)
	return err
}
