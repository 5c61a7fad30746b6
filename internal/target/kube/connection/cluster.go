// Package connection is the way to the API server of a cluster: what a kubeconfig and its overrides say, clients that
// send again what got lost while the API server was away, commands in pods, and credentials for those who ask it
// directly.
package connection

import (
	"fmt"
	"net/http"
	"sync/atomic"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/knotmeter/knotmeter/internal/target/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
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
	health   health
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

// Host is the URL of the API server.
func (c *Cluster) Host() string { return c.Config.Host }

// Unanswered is the error of the first question to an API server: which one, by what it is known, and what to do.
func (c *Cluster) Unanswered(err error) error {
	by := "no kubeconfig"
	if c.context != "" {
		by = fmt.Sprintf("context %s of the kubeconfig %s", c.context, c.from)
	}
	return fmt.Errorf("%w (API server %s, %s); check with kubectl that it answers, or name another with --context, "+
		"--kubeconfig or --server", diagnosis.Explain(err, ""), c.Config.Host, by)
}
