// Package cluster connects to the API server of a Kubernetes cluster: kubeconfig and overrides, clients that retry
// during outages, commands in pods, the RBAC rights of measurements, the accounts of pods, and watches of objects.
package cluster

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// A Cluster is a client of an API server. It counts requests and retries them during outages.
type Cluster struct {
	kubernetes.Interface
	Config      *rest.Config
	context     string // of the kubeconfig
	kubeconfig  string // location of the kubeconfig
	calls       atomic.Int64
	clockOffset atomic.Int64 // clock of the API server minus that of this machine, in nanoseconds
	// onlySPDY is set when a server or proxy refused WebSocket and accepted SPDY.
	onlySPDY atomic.Bool
	health   atomic.Int32
}

// Dial returns a client without a rate limit, so that no measurement waits for the client. It connects with the first
// request.
func Dial(config *rest.Config) (c *Cluster, err error) {
	c = &Cluster{Config: config}
	config.QPS, config.Burst = -1, -1
	config.UserAgent = manifest.AgentName
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return retrier{next, c} })
	c.Interface, err = kubernetes.NewForConfig(config)
	return c, err
}

// Host returns the URL of the API server, with a password replaced by xxxxx.
func (c *Cluster) Host() string {
	if u, err := url.Parse(c.Config.Host); err == nil {
		return u.Redacted()
	}
	return c.Config.Host
}

// ExplainNoAnswer adds to the error of the first request the address of the API server, where the address comes from,
// and what to do.
func (c *Cluster) ExplainNoAnswer(err error) error {
	by := "no kubeconfig"
	if c.context != "" {
		by = fmt.Sprintf("context %s of the kubeconfig %s", c.context, c.kubeconfig)
	}
	return fmt.Errorf("%w (API server %s, %s); check with kubectl that it answers, or name another with context=, "+
		"kubeconfig= or server=", diagnosis.Explain(err, ""), c.Host(), by)
}

// Nodes returns all nodes. If the user may not list them, it returns the nodes one and other, if both are named.
func (c *Cluster) Nodes(ctx context.Context, one, other string) ([]corev1.Node, error) {
	nodes := c.CoreV1().Nodes()
	all, err := nodes.List(ctx, metav1.ListOptions{})
	if err == nil {
		return all.Items, nil
	}
	if !apierrors.IsForbidden(err) || one == "" || other == "" {
		return nil, err
	}
	var two []corev1.Node
	for _, name := range []string{one, other} {
		found, err := nodes.List(ctx, ByName(name))
		if err != nil {
			return nil, err
		}
		two = append(two, found.Items...)
	}
	return two, nil
}
