package vault

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/httpload"
)

// askTime is how long Vault may take to answer a request that is not part of the load; under load that can be long.
const askTime = 30 * time.Second

// maxResponse limits how much of a response is read, in bytes.
const maxResponse = 1 << 20

// A replica is a client of one address of Vault, for requests that are not part of the load.
type replica struct {
	address   string
	server    httpload.Server
	token     string
	namespace string // Vault's, not Kubernetes'
	ca        []byte
	http      *http.Client
}

// replicas returns one client for each address of an endpoint.
func replicas(e host.Endpoint) ([]*replica, error) {
	server, err := httpload.NewServer(e.URL, e.Addresses,
		httpload.Trust{CA: e.CA, Cert: e.Secret.Cert, Key: e.Secret.Key}, false)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrVault, err)
	}
	if server.TLS != nil {
		server.TLS.ServerName = hostOf(server.Host)
	}
	var list []*replica
	for _, address := range server.Addresses {
		r := &replica{address: address, server: server, token: e.Secret.Token, namespace: e.Namespace, ca: e.CA}
		r.http = &http.Client{
			Timeout:   askTime,
			Transport: &http.Transport{DialContext: r.dial, TLSClientConfig: server.TLS, MaxIdleConns: 1},
			// A redirection is a response to report: its sender is not the leader.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		list = append(list, r)
	}
	return list, nil
}

func hostOf(authority string) string {
	if name, _, err := net.SplitHostPort(authority); err == nil {
		return name
	}
	return strings.Trim(authority, "[]")
}

func (r *replica) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, r.address)
}

// A refusal is a response of Vault with an error status.
type refusal struct {
	address, method, path string
	status                int
	errors                []string
}

func (r *refusal) Error() string {
	text := fmt.Sprintf("%s: %s /v1/%s: status %d", r.address, r.method, r.path, r.status)
	if len(r.errors) > 0 {
		text += ": " + strings.Join(r.errors, "; ")
	}
	return text
}

// statusOf returns the HTTP status of a refusal, 0 for other errors.
func statusOf(err error) int {
	if r, is := errors.AsType[*refusal](err); is {
		return r.status
	}
	return 0
}

// isVaultError reports whether an error is a refusal in Vault's format, and not that of a proxy or another server at
// the same address.
func isVaultError(err error) bool {
	r, is := errors.AsType[*refusal](err)
	return is && len(r.errors) > 0
}

// send sends one request, with from as its JSON body, and decodes the response into the value that into points to; both
// may be nil. A response with an error status is decoded too; its error wraps a *refusal.
func (r *replica) send(ctx context.Context, method, path string, from, into any) error {
	var body io.Reader
	if from != nil {
		text, err := json.Marshal(from)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	scheme := "http"
	if r.server.TLS != nil {
		scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, method, scheme+"://"+r.server.Host+"/v1/"+path, body)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrVault, err)
	}
	for _, f := range header(r.token, r.namespace) {
		request.Header.Set(f.Name, f.Value)
	}
	answer, err := r.http.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrVault, r.address, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxResponse))
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrVault, r.address, err)
	}
	if into != nil && len(text) > 0 {
		err = json.Unmarshal(text, into)
	}
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		said := struct{ Errors []string }{}
		_ = json.Unmarshal(text, &said) // the body may have no errors
		return fmt.Errorf("%w: %w", ErrVault, &refusal{r.address, method, path, answer.StatusCode, said.Errors})
	}
	if err != nil {
		return fmt.Errorf("%w: %s: the answer to /v1/%s can't be read: %w", ErrVault, r.address, path, err)
	}
	return nil
}

// header returns the header fields of every request.
func header(token, namespace string) []httpload.Field {
	h := []httpload.Field{{Name: "X-Vault-Request", Value: "true"}}
	if token != "" {
		h = append(h, httpload.Field{Name: "X-Vault-Token", Value: token})
	}
	if namespace != "" {
		h = append(h, httpload.Field{Name: "X-Vault-Namespace", Value: namespace})
	}
	return h
}
