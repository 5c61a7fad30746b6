package mesh

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"time"
)

// validity is how long certificates are valid: longer than any site lives.
const validity = 30 * 24 * time.Hour

// An Authority issues the identities of a site's proxies.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority returns an authority with a new key.
func NewAuthority() (*Authority, error) {
	template := certificateOf("knotmeter lab")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the mesh's certificate authority: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the mesh's certificate authority: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	return &Authority{certificate, key}, err
}

// certificateOf returns a template of a certificate.
func certificateOf(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity),
	}
}

// Issue returns a new identity for a proxy, both as a client and as a server.
func (a *Authority) Issue(name string) (Identity, error) {
	template := certificateOf(name)
	template.DNSNames, template.KeyUsage = []string{name}, x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Identity{}, fmt.Errorf("make the key of %s: %w", name, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return Identity{}, fmt.Errorf("make the certificate of %s: %w", name, err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Identity{}, fmt.Errorf("encode the key of %s: %w", name, err)
	}
	block := func(kind string, bytes []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes})
	}
	return Identity{block("CERTIFICATE", a.certificate.Raw), block("CERTIFICATE", der), block("PRIVATE KEY", secret)}, nil
}

// An Identity proves to the other proxies of a site which node a proxy is of. It is never printed.
type Identity struct {
	root, certificate, key []byte // PEM
}

// Format hides the key from every verb.
func (Identity) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "(hidden)") }

// tls returns the configurations with which a proxy dials and serves other proxies: TLS 1.3, both ends verified.
func (i Identity) tls() (client, server *tls.Config, err error) {
	own, err := tls.X509KeyPair(i.certificate, i.key)
	if err != nil {
		return nil, nil, fmt.Errorf("identity of the proxy: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(i.root) {
		return nil, nil, errors.New("identity of the proxy: no certificate authority")
	}
	both := tls.Config{
		Certificates: []tls.Certificate{own}, RootCAs: roots, ClientCAs: roots, MinVersion: tls.VersionTLS13,
		ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"h2"},
		// Connections are kept, so that tickets to resume them and small first records would only cost.
		SessionTicketsDisabled: true, DynamicRecordSizingDisabled: true,
	}
	return &both, both.Clone(), nil
}
