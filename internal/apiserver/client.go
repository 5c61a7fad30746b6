// Package apiserver is how agents reach a Kubernetes API server: the way to it, objects that are labelled as those of a
// run, watches, and the removal of all that a run made. It speaks plain HTTP, so that no library's limit on requests is
// measured instead of the server, and keeps nothing.
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

// A Client does what is not measured: it makes and removes the objects that a run needs, and watches. There is no
// limit on its rate, and no cache.
type Client struct {
	http   *http.Client
	URL    string
	Prefix string // of all paths, where a proxy serves several API servers
	Auth   []httpload.Field
	Server httpload.Server
}

// An endpoint is one with what the host itself knows of it.
type endpoint struct{ host.Endpoint }

// The variables by which every pod knows the API server.
const (
	hostVariable = "KUBERNETES_SERVICE_HOST"
	portVariable = "KUBERNETES_SERVICE_PORT"
)

// addresses are those of the endpoint, or what the environment of a pod says.
func (e endpoint) addresses() ([]string, error) {
	if !e.InPod || len(e.Addresses) > 0 {
		return e.Addresses, nil
	}
	name, port := os.Getenv(hostVariable), os.Getenv(portVariable)
	if name == "" || port == "" {
		return nil, fmt.Errorf("%w: the pod's environment has no %s and %s", ErrEndpoint, hostVariable, portVariable)
	}
	return []string{net.JoinHostPort(name, port)}, nil
}

// ErrEndpoint is what every error about the way to an API server is.
var ErrEndpoint = errors.New("the way to the API server")

// fileOr is what a file holds, or otherwise where none is named.
func fileOr(name string, otherwise []byte) ([]byte, error) {
	if name == "" {
		return otherwise, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEndpoint, err)
	}
	return text, nil
}

// Connect prepares the way to an API server. It reaches nobody yet.
func Connect(given host.Endpoint) (*Client, error) {
	e := endpoint{given}
	token, err := fileOr(e.Secret.TokenFile, []byte(e.Secret.Token))
	if err != nil {
		return nil, err
	}
	ca, err := fileOr(e.CAFile, e.CA)
	if err != nil {
		return nil, err
	}
	addresses, err := e.addresses()
	if err != nil {
		return nil, err
	}
	server, err := httpload.NewServer(e.URL, addresses,
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
	// All of it goes to the first address, as all of a run does where there is one.
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Addresses[0])
	}
	c.http = &http.Client{Transport: &http.Transport{TLSClientConfig: server.TLS,
		DialContext: dial, ForceAttemptHTTP2: server.HTTP2, MaxIdleConnsPerHost: atOnce}}
	return c, nil
}

// A Refusal is an answer of the API server that is no success.
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

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 20

// Do asks once and returns the body of a success. Errors are *Refusal, or the connection's.
func (c *Client) Do(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	answer, err := c.Ask(ctx, method, path, contentType, body)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 {
		r := &Refusal{}
		_ = json.Unmarshal(text, r) // a proxy's page has no message
		r.Status = answer.StatusCode
		return nil, r
	}
	return text, nil
}

// Ask asks once. The answer is to be closed.
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

// atOnce is how many objects are made or removed at the same time.
const atOnce = 8

// each does something for the objects from, from+1, … to-1, some at a time, and ends at the first error.
func each(ctx context.Context, from, to uint64, do func(ctx context.Context, n uint64) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	next := make(chan uint64)
	for range atOnce {
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

// Create makes the objects and returns each as the server has it.
func (c *Client) Create(ctx context.Context, i Inventory, from, to uint64, spec map[string]any) ([][]byte, error) {
	made := make([][]byte, to-from)
	err := each(ctx, from, to, func(ctx context.Context, n uint64) error {
		text, err := c.Patient(ctx, "POST", i.All(), i.Object(n, spec))
		made[n-from] = text
		return err
	})
	return made, err
}

// Patient tries again where the server asks for that.
func (c *Client) Patient(ctx context.Context, method, path string, body []byte) ([]byte, error) {
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

// A list is as much of one as matters here.
type list struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	} `json:"items"`
}

func (c *Client) list(ctx context.Context, i Inventory) (list, error) {
	var l list
	text, err := c.Do(ctx, "GET", i.All()+"?"+i.Selector(), "", nil)
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	return l, err
}

// Remove removes every object of the run and returns when all are gone with what controllers have made for them, or
// names what is left. A server that is away for a moment is waited for.
func (c *Client) Remove(ctx context.Context, i Inventory) (left []string, err error) {
	asked := map[string]time.Time{}
	var gone time.Time // since when there has been nothing
	for {
		left, err = c.removeMade(ctx, i, asked)
		switch {
		case lasting(err):
			return left, err
		case err != nil || len(left) > 0:
			gone = time.Time{}
		case len(asked) == 0 || len(i.makes()) == 0 || !gone.IsZero() && time.Since(gone) >= settleTime:
			return nil, nil
		case gone.IsZero():
			gone = time.Now()
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			if err == nil {
				err = fmt.Errorf("%d objects are left, the first %s", len(left), left[0])
			}
			return left, err
		}
	}
}

// settleTime is how long nothing may be seen of what controllers make before it counts as gone: one that has not heard
// yet of its object's end may make another pod of it.
const settleTime = time.Second

// lasting says whether an error will be the same in a moment: the server says that something is wrong with the request.
func lasting(err error) bool {
	r, refused := errors.AsType[*Refusal](err)
	return refused && r.Status < http.StatusInternalServerError && r.Status != http.StatusTooManyRequests
}

// removeMade asks for the end of what is left of the run and of what controllers made of it, in that order, so that
// they make nothing more; waiting for the garbage collector would take longer.
func (c *Client) removeMade(ctx context.Context, i Inventory, asked map[string]time.Time) (left []string, err error) {
	for _, k := range append([]Kind{i.Kind}, i.makes()...) {
		of := i
		of.Kind = k
		more, err := c.removeOnce(ctx, of, asked)
		if left = append(left, more...); err != nil {
			return left, err
		}
	}
	return left, nil
}

// removeAll removes all objects with one request, where there are many and the server does that; then it takes
// thousands a second.
func (c *Client) removeAll(ctx context.Context, i Inventory, n int) error {
	const many = 20
	if n < many || !i.Namespaced {
		return errors.ErrUnsupported
	}
	_, err := c.Do(ctx, "DELETE", i.All()+"?"+i.Selector()+"&propagationPolicy=Background", "", nil)
	return err
}

// askAgain is how long an object may take to go before its end is asked for again.
const askAgain = 5 * time.Second

// removeOnce asks for the end of every object that there is, but of those that were asked for a moment ago, and returns
// which there were.
func (c *Client) removeOnce(ctx context.Context, i Inventory, asked map[string]time.Time) (left []string, err error) {
	l, err := c.list(ctx, i)
	if err != nil {
		return nil, err
	}
	var due []string
	for _, item := range l.Items {
		path := i.All() + "/" + item.Metadata.Name
		left = append(left, item.Metadata.Name)
		if time.Since(asked[path]) > askAgain {
			due = append(due, path)
			asked[path] = time.Now()
		}
	}
	if c.removeAll(ctx, i, len(due)) == nil {
		return left, nil
	}
	err = each(ctx, 0, uint64(len(due)), func(ctx context.Context, n uint64) error {
		_, err := c.Do(ctx, "DELETE", due[n]+"?propagationPolicy=Background", "", nil)
		if r, is := errors.AsType[*Refusal](err); is && (r.Status == http.StatusNotFound || r.Status == http.StatusConflict) {
			return nil // gone, or going
		}
		return err
	})
	if err != nil {
		clear(asked)
	}
	return left, err
}
