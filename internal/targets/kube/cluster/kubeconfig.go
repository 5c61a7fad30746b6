package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
)

// A Kubeconfig is how an API server is reached: a file, a context of it, and what users say instead.
type Kubeconfig struct {
	File, Context string // "": as kubectl chooses them
	Overrides     clientcmd.ConfigOverrides
}

// Connect prepares the way to the API server. It reaches nobody yet.
func (k Kubeconfig) Connect() (*Cluster, error) {
	context, config, err := k.Load()
	if err != nil {
		return nil, err
	}
	c, err := Dial(config)
	if err != nil {
		return nil, err
	}
	c.context, c.from = context, k.Place()
	return c, nil
}

// rules are where kubectl looks for the kubeconfig.
func (k Kubeconfig) rules() *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.File
	return rules
}

// Place says where the kubeconfig is looked for.
func (k Kubeconfig) Place() string {
	if k.File != "" {
		return k.File
	}
	return strings.Join(k.rules().Precedence, ":")
}

// loader reads the kubeconfig as kubectl does.
func (k Kubeconfig) loader() clientcmd.ClientConfig {
	overrides := k.Overrides
	overrides.CurrentContext = k.Context
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(k.rules(), &overrides)
}

// Load reads the kubeconfig: the name of the context, and what a client of it takes.
func (k Kubeconfig) Load() (context string, _ *rest.Config, _ error) {
	loader := k.loader()
	raw, err := loader.RawConfig()
	if err != nil {
		return "", nil, fmt.Errorf("kubeconfig: %w", err)
	}
	context = raw.CurrentContext
	if k.Context != "" {
		context = k.Context
		if raw.Contexts[k.Context] == nil {
			names := slices.Sorted(maps.Keys(raw.Contexts))
			return "", nil, fmt.Errorf("the kubeconfig %s has no context %q; it has %s%s",
				k.Place(), k.Context, inspection.List(names), prose.DidYouMean(k.Context, names))
		}
	}
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return "", nil, fmt.Errorf("no cluster is configured in %s; set KUBECONFIG or give --kubeconfig FILE", k.Place())
	}
	if err != nil {
		return "", nil, fmt.Errorf("kubeconfig %s: %w", k.Place(), err)
	}
	return context, config, nil
}
