// Package apiserver is the agents' client of a Kubernetes API server: it creates objects with the labels of a run,
// watches them and removes them. It speaks plain HTTP, because the rate limit of a client library would be measured
// instead of the server, and it has no cache.
package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/httpload"
)

// A Client sends the requests that are not measured: it creates and removes the objects that a run needs, and watches
// them. Its rate is not limited.
type Client struct {
	http   *http.Client
	URL    string
	Prefix string // path prefix, when a proxy serves several API servers
	Auth   []httpload.Field
	Server httpload.Server
}

// The environment variables that hold the API server's address in every pod.
const (
	hostVariable = "KUBERNETES_SERVICE_HOST"
	portVariable = "KUBERNETES_SERVICE_PORT"
)

// addresses returns the endpoint's addresses; in a pod without any, the one in the environment.
func addresses(e host.Endpoint) ([]string, error) {
	if !e.InPod || len(e.Addresses) > 0 {
		return e.Addresses, nil
	}
	name, port := os.Getenv(hostVariable), os.Getenv(portVariable)
	if name == "" || port == "" {
		return nil, fmt.Errorf("%w: the pod's environment has no %s and %s", ErrEndpoint, hostVariable, portVariable)
	}
	return []string{net.JoinHostPort(name, port)}, nil
}

// ErrEndpoint is wrapped by every error about connecting to an API server.
var ErrEndpoint = errors.New("the way to the API server")

// readFileOr returns the content of a file, or fallback if name is empty.
func readFileOr(name string, fallback []byte) ([]byte, error) {
	if name == "" {
		return fallback, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEndpoint, err)
	}
	return text, nil
}

// Connect returns a client of an API server. It opens no connection yet. Errors wrap [ErrEndpoint].
func Connect(e host.Endpoint) (*Client, error) {
	token, err := readFileOr(e.Secret.TokenFile, []byte(e.Secret.Token))
	if err != nil {
		return nil, err
	}
	ca, err := readFileOr(e.CAFile, e.CA)
	if err != nil {
		return nil, err
	}
	to, err := addresses(e)
	if err != nil {
		return nil, err
	}
	server, err := httpload.NewServer(e.URL, to,
		httpload.Trust{CA: ca, Cert: e.Secret.Cert, Key: e.Secret.Key}, e.HTTP != 1 && strings.HasPrefix(e.URL, "https:"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEndpoint, err)
	}
	u, err := url.Parse(e.URL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEndpoint, err)
	}
	c := &Client{URL: u.Scheme + "://" + u.Host, Prefix: strings.TrimSuffix(u.Path, "/"), Server: server}
	for _, name := range slices.Sorted(maps.Keys(e.Secret.Header)) {
		for _, value := range e.Secret.Header[name] {
			c.Auth = append(c.Auth, httpload.Field{Name: name, Value: value})
		}
	}
	if token = bytes.TrimSpace(token); len(token) > 0 {
		c.Auth = append(c.Auth, httpload.Field{Name: "Authorization", Value: "Bearer " + string(token)})
	}
	// All requests go to the first address; with one address the measured requests of a run go there too.
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Addresses[0])
	}
	c.http = &http.Client{Transport: &http.Transport{TLSClientConfig: server.TLS,
		DialContext: dial, ForceAttemptHTTP2: server.HTTP2, MaxIdleConnsPerHost: concurrency}}
	return c, nil
}

// A Refusal is a response of the API server with an error status.
type Refusal struct {
	Status  int
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (r *Refusal) Error() string {
	if r.Message == "" {
		return fmt.Sprintf("the API server answered with status %d", r.Status)
	}
	return "the API server: " + r.Message
}

// maxResponse limits how much of a response is read, in bytes.
const maxResponse = 64 << 20

// Do sends one request and returns the body of a successful response. Its error is a [*Refusal] if the server
// responded, else the connection's.
func (c *Client) Do(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	answer, err := c.Ask(ctx, method, path, contentType, body)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxResponse))
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 {
		r := &Refusal{}
		_ = json.Unmarshal(text, r) // an error page of a proxy has no message
		r.Status = answer.StatusCode
		return nil, r
	}
	return text, nil
}

// Ask sends one request and returns the response, whatever its status. The caller closes its body.
func (c *Client) Ask(ctx context.Context, method, path, contentType string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for _, f := range c.Auth {
		request.Header.Add(f.Name, f.Value)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	return c.http.Do(request)
}

// concurrency is how many objects are created or removed at the same time.
const concurrency = 8

// forEach calls do for every n with from <= n < to, [concurrency] at a time, until a call fails. It returns the first
// error.
func forEach(ctx context.Context, from, to uint64, do func(ctx context.Context, n uint64) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	next := make(chan uint64)
	for range concurrency {
		group.Go(func() {
			for n := range next {
				if err := do(ctx, n); err != nil {
					cancel(err)
				}
			}
		})
	}
	for n := from; n < to && ctx.Err() == nil; n++ {
		select {
		case next <- n:
		case <-ctx.Done():
		}
	}
	close(next)
	group.Wait()
	return context.Cause(ctx)
}

// Create creates the objects n with from <= n < to, and returns each as the server stores it.
func (c *Client) Create(ctx context.Context, o RunObjects, from, to uint64, spec map[string]any) ([][]byte, error) {
	made := make([][]byte, to-from)
	err := forEach(ctx, from, to, func(ctx context.Context, n uint64) error {
		text, err := c.DoWithRetry(ctx, "POST", o.All(), o.Object(n, spec))
		made[n-from] = text
		return err
	})
	return made, err
}

// DoWithRetry sends a request like Do, with a body in JSON, and repeats it with growing pauses as long as the server
// answers with status 429, for some 6 s.
func (c *Client) DoWithRetry(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	for wait := 100 * time.Millisecond; ; wait *= 2 {
		text, err := c.Do(ctx, method, path, "application/json", body)
		r, refused := errors.AsType[*Refusal](err)
		if !refused || r.Status != http.StatusTooManyRequests || wait > 5*time.Second {
			return text, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// An objectList holds the fields of a list of objects that are needed here.
type objectList struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	} `json:"items"`
}

func (c *Client) list(ctx context.Context, o RunObjects) (objectList, error) {
	var l objectList
	text, err := c.Do(ctx, "GET", o.All()+"?"+o.Selector(), "", nil)
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	return l, err
}

// Remove deletes every object of the run and returns when they and the objects that controllers created for them are
// gone, or returns the names of those left when ctx ends. While the server is unavailable it retries.
func (c *Client) Remove(ctx context.Context, o RunObjects) (left []string, err error) {
	asked := map[string]time.Time{}
	var gone time.Time // when the first empty list came
	for {
		left, err = c.deleteTree(ctx, o, asked)
		switch {
		case permanent(err):
			return left, err
		case err != nil || len(left) > 0:
			gone = time.Time{}
		case len(asked) == 0 || len(o.owned()) == 0 || !gone.IsZero() && time.Since(gone) >= settleTime:
			return nil, nil
		case gone.IsZero():
			gone = time.Now()
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			switch {
			case err != nil:
			case len(left) > 0:
				err = fmt.Errorf("%d objects are left, the first %s", len(left), left[0])
			default:
				err = fmt.Errorf("controllers may still create objects: %w", context.Cause(ctx))
			}
			return left, err
		}
	}
}

// settleTime is how long no object of a controller may appear before all count as gone: a controller that has not yet
// seen the deletion of its object may create another pod for it.
const settleTime = time.Second

// permanent reports whether a retry cannot succeed, because the server rejects the request itself.
func permanent(err error) bool {
	r, refused := errors.AsType[*Refusal](err)
	return refused && r.Status < http.StatusInternalServerError && r.Status != http.StatusTooManyRequests
}

// deleteTree deletes what is left of the run's objects and then of those that controllers created for them, in
// this order, so that controllers create no more of them. Waiting for the garbage collector would take longer.
func (c *Client) deleteTree(ctx context.Context, o RunObjects, asked map[string]time.Time) (left []string, err error) {
	for _, k := range append([]Kind{o.Kind}, o.owned()...) {
		of := o
		of.Kind = k
		more, err := c.deleteListed(ctx, of, asked)
		if left = append(left, more...); err != nil {
			return left, err
		}
	}
	return left, nil
}

// deleteCollection deletes all objects of the run with one request; a server then deletes thousands of objects per
// second. For fewer than 20 objects, and those without a namespace, it returns errors.ErrUnsupported.
func (c *Client) deleteCollection(ctx context.Context, o RunObjects, n int) error {
	const many = 20
	if n < many || !o.Namespaced {
		return errors.ErrUnsupported
	}
	_, err := c.Do(ctx, "DELETE", o.All()+"?"+o.Selector()+"&propagationPolicy=Background", "", nil)
	return err
}

// deleteAgainAfter is how long an object may take to disappear before it is deleted again.
const deleteAgainAfter = 5 * time.Second

// deleteListed lists the objects, deletes those that were not deleted within the last [deleteAgainAfter], and returns
// the names of all that were listed.
func (c *Client) deleteListed(
	ctx context.Context, o RunObjects, asked map[string]time.Time,
) (left []string, err error) {
	l, err := c.list(ctx, o)
	if err != nil {
		return nil, err
	}
	var due []string
	for _, item := range l.Items {
		path := o.All() + "/" + item.Metadata.Name
		left = append(left, item.Metadata.Name)
		if time.Since(asked[path]) > deleteAgainAfter {
			due = append(due, path)
			asked[path] = time.Now()
		}
	}
	if c.deleteCollection(ctx, o, len(due)) == nil {
		return left, nil
	}
	err = forEach(ctx, 0, uint64(len(due)), func(ctx context.Context, n uint64) error {
		_, err := c.Do(ctx, "DELETE", due[n]+"?propagationPolicy=Background", "", nil)
		if r, is := errors.AsType[*Refusal](err); is && (r.Status == http.StatusNotFound || r.Status == http.StatusConflict) {
			return nil // gone, or being deleted
		}
		return err
	})
	if err != nil {
		clear(asked)
	}
	return left, err
}
