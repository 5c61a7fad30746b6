package cluster

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestEvidenceHeedsContext checks that reading evidence from an API server that does not respond ends with its context.
func TestEvidenceHeedsContext(t *testing.T) {
	for name, read := range map[string]func(context.Context, *Cluster){
		"Gather":       func(ctx context.Context, c *Cluster) { Gather(ctx, c) },
		"AssignsUsers": func(ctx context.Context, c *Cluster) { AssignsUsers(ctx, c) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				cancel()
				<-r.Context().Done()
			}))
			defer server.Close()
			defer server.CloseClientConnections()
			c, err := Dial(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			read(ctx, c)
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("it ended %v after its context", took)
			}
		})
	}
}
