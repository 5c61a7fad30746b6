package registry

import (
	"context"
	"errors"

	"github.com/knotmeter/knotmeter/internal/image"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube"
	"github.com/knotmeter/knotmeter/internal/target/kube/connection"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
)

// AgentImage is what the agent's image is called, unless somebody says otherwise.
const AgentImage = manifest.DefaultImage

func kubeKind() Kind {
	return Kind{
		Name: "kube",
		Targets: []Line{{
			"kube:CONTEXT", "any Kubernetes cluster, by its context in the kubeconfig; kube: is the current one",
		}},
		Example: "kube:production?zones=across&label=zones",
		New:     func(s target.Spec) (target.Target, error) { return kube.New(s, image.Agent, self, AgentCommand) },
		Inspect: true,
		// Nothing of this machine matters to a cluster, and which cluster is not known without a target.
		Features: func() ([]string, error) { return nil, nil },
		Clean:    cleanClusters,
		RBAC:     kube.RBAC,
		Options:  kube.Options(),
		Section:  "kubernetes",
		Uses:     connection.Uses,
	}
}

// cleanClusters cleans the clusters that are named, and no others.
func cleanClusters(ctx context.Context, specs []target.Spec, how target.Cleaning) ([]string, error) {
	var removed []string
	var errs []error
	for _, spec := range specs {
		names, err := kube.Clean(ctx, spec, image.Agent, how)
		removed = append(removed, names...)
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}
