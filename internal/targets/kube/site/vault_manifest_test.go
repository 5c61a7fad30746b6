package site

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// TestVaultCertificate checks that the certificate is valid for the name of Vault, and for no other.
func TestVaultCertificate(t *testing.T) {
	now := time.Now()
	cert, key, err := certificate(now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		t.Error(err)
	}
	block, _ := pem.Decode(cert)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(c)
	if _, err := c.Verify(x509.VerifyOptions{DNSName: vaultName, Roots: pool, CurrentTime: now}); err != nil {
		t.Error(err)
	}
	if c.VerifyHostname("other") == nil || c.NotAfter.Before(now.Add(manifest.Lifetime*time.Second-time.Second)) {
		t.Errorf("%+v", c)
	}
}
