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

// Facts that identify a cluster.
const (
	serverFact = "api-server"
	// clusterFact is the UID of the namespace kube-system, which stays the same when the API server's address changes.
	clusterFact = "cluster-uid"
)

// identity returns the facts that identify the cluster. The UID is unknown if the namespace may not be listed.
func (k *reached) identity(ctx context.Context) []result.Fact {
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	uid := result.Unknown
	if found, err := namespaceNamed(ctx, k.cluster, metav1.NamespaceSystem); err == nil {
		uid = string(found.UID)
	}
	return []result.Fact{{Name: serverFact, Value: k.cluster.Host()}, {Name: clusterFact, Value: uid}}
}

// checkIdentity returns an error if recorded facts are of another cluster. If the UID is or was unknown, the URL of the
// API server decides.
func (k *reached) checkIdentity(ctx context.Context, recorded []result.Fact) error {
	if result.FactOf(recorded, serverFact) == "" {
		return nil // nothing recorded
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

// Fills identifies the disks of the cluster's nodes: root directories are on them, and volumes of some classes.
func (k *named) Fills() string {
	_, config, err := k.options.Kubeconfig.Load()
	if err != nil {
		return "" // Begin reports the error
	}
	return (&cluster.Cluster{Config: config}).Host()
}

// Where describes the context of the kubeconfig and the API server. The cluster counts as shared unless its address is
// a loopback address and is reached without a proxy.
func (k *named) Where() (words string, shared bool, err error) {
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
