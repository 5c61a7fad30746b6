package kube

import (
	"fmt"
	"os"
	"strings"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/knotmeter/knotmeter/internal/target"
)

// largestKubeconfig bounds the kubeconfig that is read of a target that is not trusted.
const largestKubeconfig = 16 << 20

// Uses says what reaching the API server of a target runs and sends, by its options and the kubeconfig: programs, proxies and
// files with secrets. It reaches nobody, and reads the kubeconfig alone.
func Uses(spec target.Spec) []string {
	c := connection{context: spec.Name}
	for _, s := range connectionSettings {
		if value, given := spec.Options[s.Name]; given && s.Refused == nil {
			_ = s.Set(&c, value) // who measures reports the error
		}
	}
	if err := readable(c.kubeconfig); err != nil {
		return []string{fmt.Sprintf("the kubeconfig %s, of which nothing is known: %v", c.kubeconfig, err)}
	}
	raw, err := c.way().Loader().RawConfig()
	if err != nil {
		return []string{fmt.Sprintf("the kubeconfig %s, of which nothing is known: %v", c.way().Place(), err)}
	}
	return c.uses(raw)
}

// readable returns an error unless a file is a regular one of a sensible size; none at all is the default one's business.
func readable(name string) error {
	if name == "" {
		return nil
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("it is not a regular file")
	case info.Size() > largestKubeconfig:
		return fmt.Errorf("it is larger than %d MiB", largestKubeconfig>>20)
	}
	return nil
}

// uses is what a kubeconfig with the overrides has a client use.
func (c connection) uses(raw clientcmdapi.Config) []string {
	var list []string
	name := or(c.context, raw.CurrentContext)
	context := raw.Contexts[name]
	if context == nil {
		context = &clientcmdapi.Context{}
	}
	cluster, user := raw.Clusters[or(c.overrides.Context.Cluster, context.Cluster)], raw.AuthInfos[or(c.overrides.Context.AuthInfo, context.AuthInfo)]
	if cluster == nil {
		cluster = &clientcmdapi.Cluster{}
	}
	if user == nil {
		user = &clientcmdapi.AuthInfo{}
	}
	add := func(format, text string) {
		if text != "" {
			list = append(list, fmt.Sprintf(format, text))
		}
	}
	add("the API server %s", or(c.overrides.ClusterInfo.Server, cluster.Server))
	add("the proxy %s", cluster.ProxyURL)
	if e := user.Exec; e != nil {
		add("the program that is run for credentials: %s", strings.Join(append([]string{e.Command}, e.Args...), " "))
	}
	if p := user.AuthProvider; p != nil {
		add("the way to credentials named %s", p.Name)
	}
	add("the token in the file %s", user.TokenFile)
	return list
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
