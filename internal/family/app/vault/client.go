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

// askTime is how long Vault may take for a question that is not part of the load. Under load it may take long.
const askTime = 30 * time.Second

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 1 << 20

// A replica is the way to one address of Vault, beside the load.
type replica struct {
	address string
	server  httpload.Server
	token   string
	space   string // Vault's namespace
	ca      []byte
	http    *http.Client
}

// replicas are those of an endpoint: one for each address.
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
		r := &replica{address: address, server: server, token: e.Secret.Token, space: e.Namespace, ca: e.CA}
		r.http = &http.Client{
			Timeout:   askTime,
			Transport: &http.Transport{DialContext: r.dial, TLSClientConfig: server.TLS, MaxIdleConns: 1},
			// A redirection is an answer: who sent it is not the leader.
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

// A refusal is an answer of Vault that is no success.
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

// statusOf is the status of a refusal, 0 for other errors.
func statusOf(err error) int {
	if r, is := errors.AsType[*refusal](err); is {
		return r.status
	}
	return 0
}

// byVault says whether an error is a refusal in Vault's form, and not that of a proxy or of whatever else has its
// address here.
func byVault(err error) bool {
	r, is := errors.AsType[*refusal](err)
	return is && len(r.errors) > 0
}

// ask sends one request and reads the answer into the second of from and into, each of which may be nil. An answer
// that is no success is a *refusal; what it has to say is read all the same.
func (r *replica) ask(ctx context.Context, method, path string, from, into any) error {
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
	for _, f := range header(r.token, r.space) {
		request.Header.Set(f.Name, f.Value)
	}
	answer, err := r.http.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrVault, r.address, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrVault, r.address, err)
	}
	if into != nil && len(text) > 0 {
		err = json.Unmarshal(text, into)
	}
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		said := struct{ Errors []string }{}
		_ = json.Unmarshal(text, &said) // it need not say why
		return fmt.Errorf("%w: %w", ErrVault, &refusal{r.address, method, path, answer.StatusCode, said.Errors})
	}
	if err != nil {
		return fmt.Errorf("%w: %s: the answer to /v1/%s can't be read: %w", ErrVault, r.address, path, err)
	}
	return nil
}

// header is what every request has.
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
