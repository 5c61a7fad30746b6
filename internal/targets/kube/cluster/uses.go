package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/knotmeter/knotmeter/internal/targets"
)

// largestKubeconfig bounds the kubeconfig that is read of a target that is not trusted.
const largestKubeconfig = 16 << 20

// Uses says what reaching the API server of a target runs and sends, by its options and the kubeconfig: programs,
// proxies and files with secrets. It reaches nobody, and reads the kubeconfig alone.
func Uses(spec targets.Spec) []string {
	k := kubeconfigOf(spec)
	if err := readable(k.File); err != nil {
		return []string{fmt.Sprintf("the kubeconfig %s, of which nothing is known: %v", k.File, err)}
	}
	raw, err := k.loader().RawConfig()
	if err != nil {
		return []string{fmt.Sprintf("the kubeconfig %s, of which nothing is known: %v", k.Place(), err)}
	}
	return k.uses(raw)
}

// kubeconfigOf is the kubeconfig of a target, as far as its options are valid: who measures reports what is wrong.
func kubeconfigOf(spec targets.Spec) Kubeconfig {
	k := Kubeconfig{Context: spec.Name}
	for _, s := range Settings {
		if value, given := spec.Options[s.Name]; given && s.Refused == nil {
			_ = s.Set(&k, value)
		}
	}
	return k
}

// Contexts are the contexts of the kubeconfig that a target's options name, or of the default one; none of one that
// cannot be read.
func Contexts(spec targets.Spec) []string {
	k := kubeconfigOf(targets.Spec{Options: spec.Options})
	if readable(k.File) != nil {
		return nil
	}
	raw, err := k.loader().RawConfig()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(raw.Contexts))
}

// Pin names the current context in a target that names none, so that the target stays the same cluster when another
// context becomes the current one. A target without a kubeconfig stays as it is.
func Pin(spec targets.Spec) targets.Spec {
	k := kubeconfigOf(spec)
	if k.Context != "" || readable(k.File) != nil {
		return spec
	}
	raw, err := k.loader().RawConfig()
	if err != nil || raw.Contexts[raw.CurrentContext] == nil {
		return spec
	}
	return spec.With(map[string]string{"context": raw.CurrentContext})
}

// readable returns an error unless a file is a regular one of a sensible size; none at all is the default one's
// business.
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
func (k Kubeconfig) uses(raw clientcmdapi.Config) []string {
	var list []string
	name := cmp.Or(k.Context, raw.CurrentContext)
	context := raw.Contexts[name]
	if context == nil {
		context = &clientcmdapi.Context{}
	}
	cluster, user := raw.Clusters[cmp.Or(k.Overrides.Context.Cluster, context.Cluster)],
		raw.AuthInfos[cmp.Or(k.Overrides.Context.AuthInfo, context.AuthInfo)]
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
	add("the API server %s", withoutPassword(cmp.Or(k.Overrides.ClusterInfo.Server, cluster.Server)))
	add("the proxy %s", withoutPassword(cluster.ProxyURL))
	if e := user.Exec; e != nil {
		add("the program that is run for credentials: %s", strings.Join(append([]string{e.Command}, e.Args...), " "))
	}
	if p := user.AuthProvider; p != nil {
		add("the way to credentials named %s", p.Name)
	}
	add("the token in the file %s", user.TokenFile)
	return list
}

// withoutPassword returns the text of a URL with xxxxx for its password. What is no URL may have one anywhere.
func withoutPassword(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(not a URL)"
	}
	return u.Redacted()
}
