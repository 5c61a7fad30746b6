package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
)

// The facts that tell a cluster from others.
const (
	serverFact = "api-server"
	// clusterFact is the UID of the namespace kube-system, which a cluster keeps for its life whatever address its API
	// server has.
	clusterFact = "cluster-uid"
)

// identity returns the facts that tell the cluster from others. The UID is unknown where the namespace may not be
// listed.
func (k *kubeTarget) identity(ctx context.Context) []result.Fact {
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	uid := result.Unknown
	if found, err := namespaceNamed(ctx, k.cluster, metav1.NamespaceSystem); err == nil {
		uid = string(found.UID)
	}
	return []result.Fact{{Name: serverFact, Value: k.cluster.Host()}, {Name: clusterFact, Value: uid}}
}

// same returns an error if the cluster is another one than that of which facts were recorded. Where the UID was not
// known then or is not now, the URL of the API server decides.
func (k *kubeTarget) same(ctx context.Context, recorded []result.Fact) error {
	if result.FactOf(recorded, serverFact) == "" {
		return nil // nothing is recorded that could differ
	}
	now := k.identity(ctx)
	name := clusterFact
	if result.FactOf(recorded, name) == result.Unknown || result.FactOf(now, name) == result.Unknown {
		name = serverFact
	}
	if result.FactOf(recorded, name) == result.FactOf(now, name) {
		return nil
	}
	text := func(of []result.Fact) string {
		return fmt.Sprintf("the API server %s with the UID %s", result.FactOf(of, serverFact), result.FactOf(of, clusterFact))
	}
	return fmt.Errorf("this is another cluster than the one that was measured, %s: it was %s; use the kubeconfig in "+
		"which the target names that one, or begin a new experiment", text(now), text(recorded))
}

// Where names the context of the kubeconfig and the API server. A cluster is taken for this machine's own where that
// has a loopback address.
func (k *kubeTarget) Where() (words string, shared bool, err error) {
	name, config, err := k.options.Kubeconfig.Load()
	if err != nil {
		return "", true, err
	}
	c := &cluster.Cluster{Config: config}
	words = "the API server " + c.Host()
	if name != "" {
		words = "context " + name + ", " + words
	}
	u, _, err := rest.DefaultServerUrlFor(config)
	return words, err != nil || config.Proxy != nil || !host.Loopback(u.Hostname()), err
}
