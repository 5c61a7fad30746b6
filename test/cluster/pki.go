//go:build linux

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"time"
)

// An authority signs the cluster's certificates.
type authority struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

// A pair is a certificate and its private key, in PEM.
type pair struct{ Cert, Key []byte }

// newAuthority returns an authority, and its own certificate and key.
func newAuthority() (*authority, pair, error) {
	a := &authority{cert: &x509.Certificate{
		Subject: pkix.Name{CommonName: "knotmeter test cluster"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}}
	p, err := a.issue(a.cert)
	return a, p, err
}

// clientCertificate returns the template of a certificate for a user of the API server, in groups.
func clientCertificate(user string, groups ...string) *x509.Certificate {
	return &x509.Certificate{
		Subject:  pkix.Name{CommonName: user, Organization: groups},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// serverCertificate returns the template of a certificate for a server with these IP addresses.
func serverCertificate(name string, addrs ...string) *x509.Certificate {
	c := &x509.Certificate{
		Subject:  pkix.Name{CommonName: name},
		DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, addr := range addrs {
		c.IPAddresses = append(c.IPAddresses, net.ParseIP(addr))
	}
	return c
}

// issue makes a key and signs a certificate for it, valid for a year. The authority's own certificate is self-signed.
func (a *authority) issue(c *x509.Certificate) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	if c == a.cert {
		a.key = key
	}
	a.serial++
	c.SerialNumber = big.NewInt(a.serial)
	c.NotBefore = time.Now().Add(-time.Hour)
	c.NotAfter = c.NotBefore.AddDate(1, 0, 0)
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return pair{}, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair{}, err
	}
	return pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	}, nil
}

// write stores the pair as name.crt and name.key.
func (p pair) write(name string) error {
	if err := os.WriteFile(name+".crt", p.Cert, 0o600); err != nil {
		return err
	}
	return os.WriteFile(name+".key", p.Key, 0o600)
}
