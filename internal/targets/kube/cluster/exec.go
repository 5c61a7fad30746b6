package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// Exec runs commands in the pod: over WebSocket, over SPDY where a server or a proxy on the way cannot.
func (c *Cluster) Exec(namespace, pod string) remote.Exec {
	return func(ctx context.Context, args []string, s remote.Streams) error {
		executor, refusal, err := c.executor(namespace, pod, args)
		if err != nil {
			return err
		}
		// What becomes of the connection is in the error. The library would also log it, to standard error.
		quiet := klog.NewContext(ctx, klog.Logger{})
		s.Stdout = &noticed{to: s.Stdout, first: func() { c.chooseSPDY(*refusal) }}
		if err = stream(quiet, executor, s, answerTime); errors.Is(err, errUnanswered) {
			err = fmt.Errorf("the API server %s, or what is between here and it, such as a proxy, %w", c.Config.Host, err)
		}
		if *refusal != nil && ctx.Err() == nil {
			err = c.afterFallback(*refusal, err)
		}
		if right := diagnosis.MissingRight(err, namespace); right != nil {
			return right
		}
		if err != nil && ctx.Err() == nil {
			c.doubt()
		}
		return err
	}
}

// answerTime is how long the answer to the request for a command's streams may take.
const answerTime = time.Minute

var errUnanswered = errors.New("did not answer the request to connect to a pod")

// stream carries the streams of a command until they end or ctx does. The library waits for an answer to its request
// for ever, whatever its context says: a request without one is abandoned after limit or at the end of ctx, and what
// may still come of it goes nowhere.
func stream(ctx context.Context, executor remotecommand.Executor, s remote.Streams, limit time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	answered := make(chan struct{})
	guarded := remotecommand.StreamOptions{
		Stdin:  &guardedReader{ctx: ctx, from: s.Stdin, first: sync.OnceFunc(func() { close(answered) })},
		Stdout: &guardedWriter{ctx: ctx, to: s.Stdout}, Stderr: &guardedWriter{ctx: ctx, to: s.Stderr},
	}
	ended := make(chan error, 1)
	go func() { ended <- executor.StreamWithContext(ctx, guarded) }()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-answered:
		return <-ended
	case <-ctx.Done():
	case <-late.C:
		cancel(fmt.Errorf("%w within %v", errUnanswered, limit))
	}
	return context.Cause(ctx)
}

// A guardedReader is the input of a stream up to the end of ctx. It calls first when the library, which has streams
// by then, begins to read.
type guardedReader struct {
	ctx   context.Context
	from  io.Reader
	first func()
}

func (g *guardedReader) Read(b []byte) (int, error) {
	if g.ctx.Err() != nil {
		return 0, io.EOF
	}
	g.first()
	if g.from == nil {
		return 0, io.EOF
	}
	return g.from.Read(b)
}

// A guardedWriter is an output of a stream up to the end of ctx.
type guardedWriter struct {
	ctx context.Context
	to  io.Writer
}

func (g *guardedWriter) Write(b []byte) (int, error) {
	if g.ctx.Err() != nil {
		return 0, context.Cause(g.ctx)
	}
	return g.to.Write(b)
}

// executor runs a command over WebSocket, and over SPDY where that is refused, which is noted in refusal; over SPDY at
// once where only that was not refused before.
func (c *Cluster) executor(namespace, pod string, args []string) (_ remotecommand.Executor, refusal *error, _ error) {
	command := &corev1.PodExecOptions{Container: manifest.ContainerName, Command: args, Stdin: true, Stdout: true,
		Stderr: true}
	url := c.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(command, scheme.ParameterCodec).URL()
	refusal = new(error)
	websocket, err := remotecommand.NewWebSocketExecutor(c.Config, http.MethodGet, url.String())
	if err != nil {
		return nil, nil, err
	}
	spdy, err := remotecommand.NewSPDYExecutor(c.Config, http.MethodPost, url)
	if err != nil || c.onlySPDY.Load() {
		return spdy, refusal, err
	}
	executor, err := remotecommand.NewFallbackExecutor(websocket, spdy, func(err error) bool {
		if !httpstream.IsUpgradeFailure(err) && !httpstream.IsHTTPSProxyError(err) {
			return false
		}
		*refusal = err
		return true
	})
	return executor, refusal, err
}

// A noticed writer calls first when something is written.
type noticed struct {
	to    io.Writer
	once  sync.Once
	first func()
}

func (n *noticed) Write(b []byte) (int, error) {
	n.once.Do(n.first)
	return n.to.Write(b)
}

// chooseSPDY has SPDY, which works, used at once from now on if WebSocket was refused, unless it was not the way of
// connecting that was.
func (c *Cluster) chooseSPDY(refusal error) {
	if byServer := new(apierrors.StatusError); refusal != nil && !errors.As(refusal, &byServer) {
		c.onlySPDY.Store(true)
	}
}

// afterFallback judges what came of SPDY after WebSocket was refused.
func (c *Cluster) afterFallback(refusal, err error) error {
	byServer := new(apierrors.StatusError)
	switch {
	case errors.As(refusal, &byServer):
		return err
	case err != nil && strings.Contains(err.Error(), "unable to upgrade"):
		return fmt.Errorf("something between here and the API server %s, such as a proxy or a load balancer, lets neither "+
			"WebSocket nor SPDY pass, and there is no other way to the pods; have it pass on requests with the header "+
			"Upgrade, or reach the API server without it (server= names its URL): %w; and over SPDY: %w",
			c.Config.Host, refusal, err)
	}
	c.chooseSPDY(refusal)
	return err
}
