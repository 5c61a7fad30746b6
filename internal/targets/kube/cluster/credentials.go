package cluster

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
)

// AddCredentials sets in an endpoint the URL, the certificates and the credentials by which the kubeconfig reaches the
// API server. The error Is result.ErrNotSupported if the load generator cannot connect directly.
func AddCredentials(ctx context.Context, config *rest.Config, e *host.Endpoint) error {
	u, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	if err := checkDirect(config, request); err != nil {
		return err
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	e.URL, e.CA = u.String(), config.CAData
	if name := config.ServerName; name != "" {
		port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
		e.Addresses = []string{net.JoinHostPort(u.Hostname(), port)}
		u.Host = net.JoinHostPort(name, port)
		e.URL = u.String()
	}
	e.Secret.Cert, e.Secret.Key = config.CertData, config.KeyData
	return addAuthentication(config, request, e)
}

// checkDirect returns an error if the kubeconfig needs something that the load generator lacks: a proxy, or TLS without
// verification.
func checkDirect(config *rest.Config, request *http.Request) error {
	proxy := config.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	through, err := proxy(request)
	switch {
	case err != nil:
		return fmt.Errorf("the proxy of the kubeconfig: %w", err)
	case through != nil:
		return result.NotSupported(fmt.Sprintf("requests to the API server go through the proxy %s, which would be "+
			"measured too; leave vantage=here out, or reach the API server without it", through.Redacted()))
	case config.Insecure:
		return result.NotSupported("vantage=here checks the API server's certificate, and insecure-skip-tls-verify says " +
			"that it cannot be; give certificate-authority= instead")
	}
	return nil
}

// addAuthentication adds the headers and the client certificate that client-go would use, whether they come from a
// file, a program or impersonation. It sends nothing to the API server.
func addAuthentication(config *rest.Config, request *http.Request, e *host.Endpoint) error {
	seen, err := recordHeader(config, request)
	if err != nil {
		return fmt.Errorf("the credentials of the kubeconfig: %w", err)
	}
	e.Secret.Header = map[string][]string{}
	for name, values := range seen {
		if name != "User-Agent" && name != "Accept-Encoding" {
			e.Secret.Header[name] = values
		}
	}
	transport, err := config.TransportConfig()
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	if transport.TLS.GetCertHolder == nil {
		return nil
	}
	cert, err := transport.TLS.GetCertHolder.GetCert()
	if err != nil || cert == nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		return fmt.Errorf("the key that the kubeconfig's program gives: %w", err)
	}
	for _, der := range cert.Certificate {
		e.Secret.Cert = append(e.Secret.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	e.Secret.Key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	return nil
}

// logIn has the kubeconfig's program give the credentials, unless client-go has them already. It sends nothing to the
// API server.
func logIn(ctx context.Context, config *rest.Config) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://localhost", nil)
	if err != nil {
		return err
	}
	_, err = recordHeader(config, request)
	return err
}

// recordHeader returns the header with which client-go would send a request, and does not send it.
func recordHeader(config *rest.Config, request *http.Request) (seen http.Header, err error) {
	wrapped, err := rest.HTTPWrappersForConfig(config, headerRecorder(func(h http.Header) { seen = h }))
	if err != nil {
		return nil, err
	}
	answer, err := wrapped.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	return seen, answer.Body.Close()
}

// A headerRecorder receives the header of a request, and answers it without sending it.
type headerRecorder func(http.Header)

func (f headerRecorder) RoundTrip(r *http.Request) (*http.Response, error) {
	f(r.Header.Clone())
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}
