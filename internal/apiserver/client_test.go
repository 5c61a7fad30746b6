package apiserver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/host"
)

// The address of a pod's API server is in its environment, its credentials in files.
func TestInPod(t *testing.T) {
	e := host.Endpoint{URL: "https://kubernetes.default.svc", InPod: true,
		Secret: host.Secret{TokenFile: filepath.Join(t.TempDir(), "token")}}
	t.Setenv(hostVariable, "")
	if _, err := Connect(e); !errors.Is(err, ErrEndpoint) {
		t.Errorf("without a token: %v", err)
	}
	if err := os.WriteFile(e.Secret.TokenFile, []byte("abc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Connect(e); !errors.Is(err, ErrEndpoint) || !strings.Contains(err.Error(), hostVariable) {
		t.Errorf("without an address: %v", err)
	}
	t.Setenv(hostVariable, "fd00::1")
	t.Setenv(portVariable, "443")
	c, err := Connect(e)
	if err != nil || c.Server.Addresses[0] != "[fd00::1]:443" ||
		c.Server.Host != "kubernetes.default.svc" || c.Auth[0].Value != "Bearer abc" {
		t.Errorf("%+v, %v", c, err)
	}
}
