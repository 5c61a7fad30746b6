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

	"github.com/knotmeter/knotmeter/internal/result"
)

// largestKubeconfig is the maximum size in bytes of the kubeconfig of an untrusted target.
const largestKubeconfig = 16 << 20

// Uses lists what connecting to a target's API server would run and send: programs, proxies and files with secrets. It
// reads only the kubeconfig and opens no connection.
func Uses(spec result.Spec) []string {
	k := specKubeconfig(spec)
	if err := checkKubeconfigFile(k.File); err != nil {
		return []string{fmt.Sprintf("the kubeconfig %s, of which nothing is known: %v", k.File, err)}
	}
	raw, err := k.loader().RawConfig()
	if err != nil {
		return []string{fmt.Sprintf("the kubeconfig %s, of which nothing is known: %v", k.Location(), err)}
	}
	return k.uses(raw)
}

// specKubeconfig returns the kubeconfig that a target selects. It ignores invalid options, which are reported when the
// target is parsed.
func specKubeconfig(spec result.Spec) Kubeconfig {
	k := Kubeconfig{Context: spec.Name}
	for _, s := range Settings {
		if value, given := spec.Options[s.Name]; given && s.Refused == nil {
			_ = s.Set(&k, value)
		}
	}
	return k
}

// Contexts returns the sorted contexts of the kubeconfig that a target's options name, or of the default one; nil if it
// cannot be read.
func Contexts(spec result.Spec) []string {
	k := specKubeconfig(result.Spec{Options: spec.Options})
	if checkKubeconfigFile(k.File) != nil {
		return nil
	}
	raw, err := k.loader().RawConfig()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(raw.Contexts))
}

// PinContext adds the current context to a target that names none, so that the target stays the same cluster when the
// current context changes. It returns the target unchanged if the kubeconfig cannot be read.
func PinContext(spec result.Spec) result.Spec {
	k := specKubeconfig(spec)
	if k.Context != "" || checkKubeconfigFile(k.File) != nil {
		return spec
	}
	raw, err := k.loader().RawConfig()
	if err != nil || raw.Contexts[raw.CurrentContext] == nil {
		return spec
	}
	return spec.With(map[string]string{"context": raw.CurrentContext})
}

// checkKubeconfigFile returns an error unless a file is regular and of a sensible size. It accepts "", the default
// kubeconfig.
func checkKubeconfigFile(name string) error {
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

// uses lists what a client with this kubeconfig and its overrides would run and send.
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

// withoutPassword returns a URL with xxxxx for its password, or "(not a URL)" for other text, which may contain a
// password anywhere.
func withoutPassword(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(not a URL)"
	}
	return u.Redacted()
}
