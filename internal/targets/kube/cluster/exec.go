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

// Exec returns a function that runs commands in a pod: over WebSocket, or over SPDY if a server or proxy refuses that.
func (c *Cluster) Exec(namespace, pod string) remote.Exec {
	return func(ctx context.Context, args []string, s remote.Streams) error {
		executor, refusal, err := c.executor(namespace, pod, args)
		if err != nil {
			return err
		}
		// The library would also log the connection's errors, to standard error.
		quiet := klog.NewContext(ctx, klog.Logger{})
		s.Stdout = &firstWriteWriter{to: s.Stdout, onFirst: func() { c.chooseSPDY(*refusal) }}
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
			c.markDoubtful()
		}
		return err
	}
}

// answerTime limits the wait for the answer to the request for a command's streams.
const answerTime = time.Minute

var errUnanswered = errors.New("did not answer the request to connect to a pod")

// stream carries the streams of a command until they end or ctx ends. The library ignores its context while it waits
// for the answer to its request. So stream abandons a request without an answer after limit or at the end of ctx, and
// discards its later input and output.
func stream(ctx context.Context, executor remotecommand.Executor, s remote.Streams, limit time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	answered := make(chan struct{})
	guarded := remotecommand.StreamOptions{
		Stdin:  &guardedReader{ctx: ctx, from: s.Stdin, onFirst: sync.OnceFunc(func() { close(answered) })},
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

// A guardedReader reads the input of a stream until ctx ends. It calls onFirst when the library begins to read, which
// shows that the streams are open.
type guardedReader struct {
	ctx     context.Context
	from    io.Reader
	onFirst func()
}

func (g *guardedReader) Read(b []byte) (int, error) {
	if g.ctx.Err() != nil {
		return 0, io.EOF
	}
	g.onFirst()
	if g.from == nil {
		return 0, io.EOF
	}
	return g.from.Read(b)
}

// A guardedWriter writes an output of a stream until ctx ends.
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

// executor returns an executor that uses WebSocket, and SPDY if WebSocket is refused; then it stores the error in
// refusal. If WebSocket was refused before, it uses only SPDY.
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

// A firstWriteWriter calls onFirst before the first write.
type firstWriteWriter struct {
	to      io.Writer
	once    sync.Once
	onFirst func()
}

func (n *firstWriteWriter) Write(b []byte) (int, error) {
	n.once.Do(n.onFirst)
	return n.to.Write(b)
}

// chooseSPDY makes all later commands use SPDY if refusal, the refusal of WebSocket, is not nil and did not come from
// the API server itself.
func (c *Cluster) chooseSPDY(refusal error) {
	if byServer := new(apierrors.StatusError); refusal != nil && !errors.As(refusal, &byServer) {
		c.onlySPDY.Store(true)
	}
}

// afterFallback returns the error of a command over SPDY, with an explanation if neither WebSocket nor SPDY is
// possible.
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
