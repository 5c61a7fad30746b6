// Package cluster connects to the API server of a Kubernetes cluster: kubeconfig and overrides, clients that retry
// while the API server is away, commands in pods, the rights that measuring takes, the accounts of pods, and waits for
// what becomes of objects.
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

// A Cluster is the way to an API server.
type Cluster struct {
	kubernetes.Interface
	Config  *rest.Config
	context string // of the kubeconfig
	from    string // the kubeconfig
	calls   atomic.Int64
	ahead   atomic.Int64 // the API server's clock is of this machine's, in nanoseconds
	// onlySPDY says that WebSocket was refused on the way, and SPDY was not.
	onlySPDY atomic.Bool
	health   atomic.Int32
}

// Dial prepares clients without any limit on their rate: what is measured must not wait for one.
func Dial(config *rest.Config) (c *Cluster, err error) {
	c = &Cluster{Config: config}
	config.QPS, config.Burst = -1, -1
	config.UserAgent = manifest.AgentName
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return retrier{next, c} })
	c.Interface, err = kubernetes.NewForConfig(config)
	return c, err
}

// Host is the URL of the API server, without a password.
func (c *Cluster) Host() string { return safe(c.Config.Host) }

// safe is a URL without the password that it may have.
func safe(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Redacted()
	}
	return address
}

// Unanswered is the error of the first question to an API server: which one, by what it is known, and what to do.
func (c *Cluster) Unanswered(err error) error {
	by := "no kubeconfig"
	if c.context != "" {
		by = fmt.Sprintf("context %s of the kubeconfig %s", c.context, c.from)
	}
	return fmt.Errorf("%w (API server %s, %s); check with kubectl that it answers, or name another with --context, "+
		"--kubeconfig or --server", diagnosis.Explain(err, ""), c.Host(), by)
}

// Nodes are all nodes; or those of two names, if no others may be seen.
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
		found, err := nodes.List(ctx, Named(name))
		if err != nil {
			return nil, err
		}
		two = append(two, found.Items...)
	}
	return two, nil
}
