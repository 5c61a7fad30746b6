package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/target/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
)

// A cluster is the way to an API server.
type cluster struct {
	kubernetes.Interface
	config  *rest.Config
	context string // of the kubeconfig
	from    string // the kubeconfig
	calls   atomic.Int64
	ahead   atomic.Int64 // the API server's clock is of this machine's, in nanoseconds
	// onlySPDY says that WebSocket was refused on the way, and SPDY was not.
	onlySPDY atomic.Bool
	bond     bond
}

// connect prepares the way that the options and a kubeconfig say. It reaches nobody yet.
func connect(o options) (*cluster, error) {
	context, config, err := configure(o)
	if err != nil {
		return nil, err
	}
	c := &cluster{context: context, from: place(rulesOf(o))}
	return c, c.dial(config)
}

// unanswered is the error of the first question to an API server: which one, by what it is known, and what to do.
func (c *cluster) unanswered(err error) error {
	by := "no kubeconfig"
	if c.context != "" {
		by = fmt.Sprintf("context %s of the kubeconfig %s", c.context, c.from)
	}
	return fmt.Errorf("%w (API server %s, %s); check with kubectl that it answers, or name another with --context, --kubeconfig or --server",
		diagnosis.Explain(err, ""), c.config.Host, by)
}

// rulesOf are where kubectl looks for the kubeconfig.
func rulesOf(o options) *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	return rules
}

// configure reads the kubeconfig as kubectl does.
func configure(o options) (context string, _ *rest.Config, _ error) {
	rules := rulesOf(o)
	overrides := o.overrides
	overrides.CurrentContext = o.context
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &overrides)
	raw, err := loader.RawConfig()
	if err != nil {
		return "", nil, fmt.Errorf("kubeconfig: %w", err)
	}
	context = raw.CurrentContext
	if o.context != "" {
		context = o.context
		if raw.Contexts[o.context] == nil {
			return "", nil, fmt.Errorf("the kubeconfig %s has no context %q; it has %s", place(rules), o.context, inspection.List(slices.Sorted(maps.Keys(raw.Contexts))))
		}
	}
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return "", nil, fmt.Errorf("no cluster is configured in %s; set KUBECONFIG or give --kubeconfig FILE", place(rules))
	}
	if err != nil {
		return "", nil, fmt.Errorf("kubeconfig %s: %w", place(rules), err)
	}
	return context, config, nil
}

// dial prepares clients without any limit on their rate: what is measured must not wait for one.
func (c *cluster) dial(config *rest.Config) (err error) {
	config.QPS, config.Burst = -1, -1
	config.UserAgent = manifest.AgentName
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return carrier{next, c} })
	c.config = config
	c.Interface, err = kubernetes.NewForConfig(config)
	return err
}

// exec runs commands in the pod: over WebSocket, over SPDY where a server or a proxy on the way can not.
func (c *cluster) exec(namespace, pod string) remote.Exec {
	return func(ctx context.Context, args []string, s remote.Streams) error {
		url := c.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
			VersionedParams(&corev1.PodExecOptions{Container: manifest.ContainerName, Command: args, Stdin: true, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
		websocket, err := remotecommand.NewWebSocketExecutor(c.config, http.MethodGet, url.String())
		if err != nil {
			return err
		}
		spdy, err := remotecommand.NewSPDYExecutor(c.config, http.MethodPost, url)
		if err != nil {
			return err
		}
		// What becomes of the connection is in the error. The library would also log it, to standard error.
		err = c.stream(klog.NewContext(ctx, klog.Logger{}), websocket, spdy, remotecommand.StreamOptions{Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr})
		if right := diagnosis.RefusedRight(err, namespace); right != nil {
			return right
		}
		if err != nil && ctx.Err() == nil {
			c.bond.doubt()
		}
		return err
	}
}

// stream connects over WebSocket; over SPDY where that is refused, and from then on at once if SPDY is not.
func (c *cluster) stream(ctx context.Context, websocket, spdy remotecommand.Executor, o remotecommand.StreamOptions) error {
	var refusal error
	if !c.onlySPDY.Load() {
		err := websocket.StreamWithContext(ctx, o)
		if err == nil || !httpstream.IsUpgradeFailure(err) && !httpstream.IsHTTPSProxyError(err) {
			return err
		}
		refusal = err
	}
	err := spdy.StreamWithContext(ctx, o)
	refused := err != nil && strings.Contains(err.Error(), "unable to upgrade")
	if refusal == nil || ctx.Err() != nil {
		return err
	}
	var byServer *apierrors.StatusError
	switch {
	case errors.As(refusal, &byServer):
		return err // it was not the way of connecting that was refused
	case refused:
		return fmt.Errorf("something between here and the API server %s, such as a proxy or a load balancer, lets neither WebSocket nor SPDY pass, "+
			"and there is no other way to the pods; have it pass on requests with the header Upgrade, or reach the API server without it (server= names its URL): %w; and over SPDY: %w",
			c.config.Host, refusal, err)
	}
	c.onlySPDY.Store(true)
	return err
}
