package httpload

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A Trust holds the certificates of a connection. The zero Trust means the host's own authorities and no client
// certificate.
type Trust struct {
	CA        []byte // authorities for the server's certificate, PEM
	Cert, Key []byte // of the client, PEM
}

// NewServer returns the server of a URL. If addresses is not empty, connections go to these in turn instead of the
// URL's host. Errors name the invalid part and Is ErrConfig.
func NewServer(text string, addresses []string, trust Trust, http2 bool) (Server, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return Server{}, fmt.Errorf("%w: %q is no http or https URL", ErrConfig, text)
	}
	s := Server{Addresses: addresses, Host: u.Host, HTTP2: http2}
	if len(addresses) == 0 {
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
		s.Addresses = []string{net.JoinHostPort(u.Hostname(), port)}
	}
	if u.Scheme == "http" {
		return s, nil
	}
	s.TLS, err = trust.config()
	return s, err
}

// config returns the TLS configuration.
func (t Trust) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(t.CA) > 0 {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(t.CA) {
			return nil, fmt.Errorf("%w: no certificate of an authority can be read", ErrConfig)
		}
	}
	if len(t.Cert) > 0 {
		pair, err := tls.X509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("%w: the client's certificate: %w", ErrConfig, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// A Result is a report with the search that preceded it.
type Result struct {
	Report
	// Trials are those of a search. Limited reports that the generator, not the server, ended it.
	Trials  []Trial `json:"trials,omitempty"`
	Limited bool    `json:"limited,omitempty"`
	// Step is how far, as a fraction, the rate found may be below the highest that would have passed; 0 without a
	// search.
	Step float64 `json:"step,omitempty"`
	// Clients is the smallest number that saturates the server, TooFew the largest tried number below it that does not;
	// both are 0 without a search for them. Rises reports that the rate still rose with Clients, the most that were
	// tried without failures.
	Clients int  `json:"clients,omitempty"`
	TooFew  int  `json:"too_few,omitempty"`
	Rises   bool `json:"rises,omitempty"`
	// Distributions of times other than those of requests.
	Distributions []Distribution `json:"distributions,omitempty"`
	// Values of metrics, in their units, that only the agent can compute.
	Values   map[string]float64 `json:"values,omitempty"`
	Facts    map[string]string  `json:"facts,omitempty"`
	Invalid  []result.Warning   `json:"invalid,omitempty"`
	Warnings []result.Warning   `json:"warnings,omitempty"`
}

// A Distribution holds times in ns, as an HdrHistogram V2.
type Distribution struct {
	Name    string `json:"name"`
	Encoded string `json:"hdr"`
}

// SearchAndRun carries out the search that c asks for, if any, and then runs with the rate or the number of clients
// that it found.
func SearchAndRun(ctx context.Context, c Config) (Result, error) {
	var found Result
	var err error
	none := ""
	switch {
	case c.Knee > 0:
		var s *search
		found.Report, s, err = runSearch(ctx, c)
		found.Trials, found.Limited, found.Step = s.trials, s.Limited(), s.Step()
		if s.passed == 0 {
			none = "the search found no rate at which the server keeps the limit"
		}
	case c.MostClients > 0:
		var s *saturation
		found.Report, s, err = runSaturation(ctx, c)
		found.Trials, found.Limited, found.Step, found.Rises = s.trials, s.Limited(), s.Step(), s.Rises()
		if found.Clients, found.TooFew = s.Found(); found.Clients == 0 {
			none = "the search found no number of clients at which nothing fails"
		}
	default:
		found.Report, err = Run(ctx, c)
	}
	if none != "" {
		found.Invalid = append(found.Invalid, result.Warning{Code: result.NoRate, Text: none})
	}
	return found, err
}
