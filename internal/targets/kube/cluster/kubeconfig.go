package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
)

// A Kubeconfig selects a kubeconfig file and a context, with overrides.
type Kubeconfig struct {
	File, Context string // "": as kubectl chooses
	Overrides     clientcmd.ConfigOverrides
}

// Connect returns a client of the API server. It sends no request yet, but runs the program that the kubeconfig names
// for credentials, if any, without a limit, because it may ask the user to log in. When ctx ends, Connect abandons that
// program, and files that cannot be read to their end.
func (k Kubeconfig) Connect(ctx context.Context) (*Cluster, error) {
	var c *Cluster
	done := make(chan error, 1)
	go func() {
		var err error
		c, err = k.connect(ctx)
		done <- err
	}()
	select {
	case err := <-done:
		return c, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (k Kubeconfig) connect(ctx context.Context) (*Cluster, error) {
	name, config, err := k.Load()
	if err != nil {
		return nil, err
	}
	if config.ExecProvider != nil {
		// client-go starts the program without a context in the first request that needs credentials, and keeps those.
		if err := logIn(ctx, config); err != nil {
			return nil, fmt.Errorf("kubeconfig %s: %w", k.Location(), err)
		}
	}
	c, err := Dial(config)
	if err != nil {
		return nil, err
	}
	c.context, c.kubeconfig = name, k.Location()
	return c, nil
}

// rules returns kubectl's search rules for the kubeconfig.
func (k Kubeconfig) rules() *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.File
	return rules
}

// Location returns the file of the kubeconfig, or the colon-separated files that are searched.
func (k Kubeconfig) Location() string {
	if k.File != "" {
		return k.File
	}
	return strings.Join(k.rules().Precedence, ":")
}

// loader returns a loader that applies kubectl's rules.
func (k Kubeconfig) loader() clientcmd.ClientConfig {
	overrides := k.Overrides
	overrides.CurrentContext = k.Context
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(k.rules(), &overrides)
}

// Load returns the name of the context and the configuration of a client for it.
func (k Kubeconfig) Load() (name string, _ *rest.Config, _ error) {
	loader := k.loader()
	raw, err := loader.RawConfig()
	if err != nil {
		return "", nil, fmt.Errorf("kubeconfig: %w", err)
	}
	name = raw.CurrentContext
	if k.Context != "" {
		name = k.Context
		if raw.Contexts[k.Context] == nil {
			names := slices.Sorted(maps.Keys(raw.Contexts))
			return "", nil, fmt.Errorf("the kubeconfig %s has no context %q; it has %s%s",
				k.Location(), k.Context, inspection.List(names), prose.DidYouMean(k.Context, names))
		}
	}
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return "", nil, fmt.Errorf("no cluster is configured in %s; set KUBECONFIG or give kubeconfig=FILE", k.Location())
	}
	if err != nil {
		return "", nil, fmt.Errorf("kubeconfig %s: %w", k.Location(), err)
	}
	return name, config, nil
}
