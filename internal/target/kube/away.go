package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/target/kube/watching"
)

// API servers restart, and connections to them break. What one did not get is sent again when it is ready, as long as
// that may take; one that never answered is not waited for.

const (
	absence    = 50 * time.Second // that an API server may have, within the minute that places may take
	probeTime  = 2 * time.Second  // for one question whether it is ready
	probePause = 250 * time.Millisecond
	repeats    = 5 // of a request whose connection breaks each time
)

// A bond is what is known of the way to an API server.
type bond struct{ atomic.Int32 }

const (
	strange  int32 = iota // it never answered
	sound                 // it answered last time
	doubtful              // a connection broke
	broken                // it was waited for in vain
)

// doubt makes the next request ask first whether the API server is ready.
func (b *bond) doubt() { b.CompareAndSwap(sound, doubtful) }

// hope has the next request wait again for one that was waited for in vain.
func (b *bond) hope() { b.CompareAndSwap(broken, doubtful) }

// lost says whether the API server was away last time.
func (b *bond) lost() bool { return b.Load() >= doubtful }

// A carrier carries requests to an API server and counts them.
type carrier struct {
	next http.RoundTripper
	c    *cluster
}

func (w carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	w.c.calls.Add(1)
	// Who executes something learns of the break from its own connection.
	if strings.HasSuffix(r.URL.Path, "/exec") {
		return w.next.RoundTrip(r)
	}
	for try := 1; ; try++ {
		if err := w.await(r); err != nil {
			return nil, err
		}
		answer, err := w.next.RoundTrip(r)
		if err == nil {
			w.c.bond.Store(sound)
			w.c.setClock(answer.Header.Get("Date"))
			return answer, nil
		}
		w.c.bond.doubt()
		if !w.c.bond.lost() || try == repeats || r.Context().Err() != nil || !repeatable(r, err) {
			return nil, err
		}
		if r, err = rewound(r); err != nil {
			return nil, err
		}
	}
}

// setClock takes the time of the API server from an answer, so that all who ask it agree on how long ago something was.
func (c *cluster) setClock(date string) {
	if there, err := http.ParseTime(date); err == nil {
		c.ahead.Store(int64(time.Until(there)))
	}
}

// now is the API server's time.
func (c *cluster) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// repeatable says whether a request can be sent again: it never arrived, or a second time changes nothing.
func repeatable(r *http.Request, err error) bool {
	if unreached(err) {
		return r.Body == nil || r.GetBody != nil
	}
	return r.Method == http.MethodGet || r.Method == http.MethodDelete && (r.Body == nil || r.GetBody != nil)
}

// unreached says whether there was nobody to connect to.
func unreached(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial"
}

func rewound(r *http.Request) (*http.Request, error) {
	if r.GetBody == nil {
		return r, nil
	}
	body, err := r.GetBody()
	again := r.Clone(r.Context())
	again.Body = body
	return again, err
}

// await waits until a server that was away is ready: right after its start it does not know yet who may do what.
func (w carrier) await(r *http.Request) error {
	if !w.c.bond.lost() {
		return nil
	}
	deadline := time.Now()
	if w.c.bond.Load() == doubtful {
		deadline = deadline.Add(absence)
	}
	for {
		err := w.ready(r)
		if err == nil {
			w.c.bond.Store(sound)
			return nil
		}
		if time.Now().After(deadline) || watching.Pause(r.Context(), probePause) != nil {
			w.c.bond.Store(broken)
			if errors.Is(r.Context().Err(), context.Canceled) {
				return context.Cause(r.Context())
			}
			return err
		}
	}
}

// ready asks the server whether it is, as who asks for r. Servers that do not tell are taken for ready.
func (w carrier) ready(r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), probeTime)
	defer cancel()
	probe := r.Clone(ctx)
	probe.Method, probe.Body, probe.GetBody, probe.ContentLength = http.MethodGet, nil, nil, 0
	probe.URL = &url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Path: w.c.prefix() + "/readyz"}
	answer, err := w.next.RoundTrip(probe)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusInternalServerError || answer.StatusCode == http.StatusTooManyRequests {
		return &url.Error{Op: "Get", URL: probe.URL.String(), Err: errors.New(answer.Status)}
	}
	return nil
}

// prefix is what stands before all paths of the API server, where a proxy serves several.
func (c *cluster) prefix() string {
	u, err := url.Parse(c.config.Host)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(u.Path, "/")
}

// An absent is an error that is about the target as a whole, and Is target.ErrUnavailable.
type absent struct{ error }

func (a absent) Is(err error) bool { return err == target.ErrUnavailable }

func (a absent) Unwrap() error { return a.error }

// open makes a site, in a namespace that is made again if somebody removed it.
func (k *kubeTarget) open(ctx context.Context, p target.Placement) (*site, error) {
	if k.cluster != nil {
		k.cluster.bond.hope()
	}
	s, err := k.place(ctx, p)
	if err != nil && k.own && diagnosis.NamespaceGone(err) && k.cluster.removeNamespace(ctx, k.namespace) == nil {
		k.dismiss()
		k.namespace = ""
		s, err = k.place(ctx, p)
	}
	k.unclean = k.unclean || err != nil && s != nil && (s.made || s.volume != nil)
	return s, err
}

// judge tells what is wrong with the cluster, or with what we may do there, from what is wrong with a case. A case that
// Supports took for possible has lost its node, if now there is none for it.
func (k *kubeTarget) judge(ctx context.Context, err error) error {
	if k.cluster == nil || errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	sick := k.unready(ctx)
	switch {
	case errors.Is(err, result.ErrNotSupported):
		if sick == "" || k.refusedFor(err) {
			return err
		}
		return absent{errors.New(err.Error())} // with the node it will be supported
	case sick != "":
		return absent{fmt.Errorf("%s; see to it, or name other nodes with client-node= and server-node=: %w", sick, err)}
	case k.cluster.bond.lost(), unreached(err), diagnosis.NamespaceGone(err), diagnosis.Denied(err), apierrors.IsUnauthorized(err), apierrors.IsServiceUnavailable(err):
		return absent{err}
	}
	return err
}

// refusedFor says whether an error is one about paths, and not about nodes.
func (k *kubeTarget) refusedFor(err error) bool {
	for _, known := range k.refused {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// unready names the nodes that runs are to be on and that are not ready now; empty if all are, or nobody tells.
func (k *kubeTarget) unready(ctx context.Context) string {
	if k.nodes == nil || k.cluster.bond.lost() {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
	defer cancel()
	nodes, err := k.cluster.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return ""
	}
	var list []string
	for _, n := range nodes.Items {
		if k.nodes.MayUse(n.Name) && !inspection.Ready(n) {
			list = append(list, "node "+n.Name+" is not ready"+diagnosis.Heard(n))
		}
	}
	return strings.Join(list, " and ")
}
