package apiserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/host"
)

// TestInPod checks that a pod takes the API server's address from its environment, and the credentials from files.
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

// TestRemoveEndsWhileSettling checks that a removal that ends while controllers may still create objects reports that,
// although no object is left.
func TestRemoveEndsWhileSettling(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	lists := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet:
			_, _ = io.WriteString(w, "{}")
		case lists == 0: // the Deployment
			_, _ = io.WriteString(w, `{"items":[{"metadata":{"name":"knotmeter-r-1"}}]}`)
		default:
			_, _ = io.WriteString(w, `{"items":[]}`)
		}
		if lists++; lists > 6 {
			cancel()
		}
	}))
	defer server.Close()
	c, err := Connect(host.Endpoint{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	left, err := c.Remove(ctx, RunObjects{Kind: KindOf("deployment"), Run: "r", Namespace: "ns"})
	if len(left) > 0 || err == nil {
		t.Errorf("%v are left, %v", left, err)
	}
}
