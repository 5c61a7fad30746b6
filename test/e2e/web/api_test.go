//go:build linux

package web

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/test/e2e"
)

// TestAPIVantagePoints checks that the runs report the vantage point, the priority level of their requests, and what
// the API server itself counted: from a pod with its own service account, and from this machine with the kubeconfig's
// credentials.
func TestAPIVantagePoints(t *testing.T) {
	cluster := e2e.Open(t)
	t.Cleanup(func() { cluster.NothingLeft(t) })
	cases := []string{"api/floor", "api/configmap/create", "api/namespace/create", "api/deployment/scale",
		"api/pod-startup"}
	for vantage, priority := range map[string]string{"pod": "workload-low", "here": "exempt"} {
		t.Run(vantage, func(t *testing.T) {
			args := []string{"--target", "kube:?kubeconfig=" + cluster.Kubeconfig + "&vantage=" + vantage, "--suite", "api",
				"--blocks", "1", "--duration", "6s"}
			for _, c := range cases {
				args = append(args, "--case", c)
			}
			got := experiment(t, nil, args...).validRuns(t, result.GeneratorLate)
			for _, c := range cases {
				r, is := got[c]
				if !is {
					t.Errorf("%s was not measured", c)
					continue
				}
				facts := map[string]string{}
				for _, f := range r.Facts {
					facts[f.Name] = f.Value
				}
				if facts["vantage"] != vantage || facts["api.priority-level"] != priority || facts["api.protocol"] != "HTTP/2.0" {
					t.Errorf("%s: %v", c, facts)
				}
				if c == "api/configmap/create" && !strings.Contains(facts["server.sli"], " requests, mean ") {
					t.Errorf("%s: the server's own latencies: %q, %q", c, facts["server.sli"], facts["server"])
				}
			}
			cluster.NothingLeft(t)
		})
	}
}

// slowed starts a proxy of the API server that delays reads of ConfigMaps.
func slowed(t *testing.T, config *rest.Config, wait time.Duration) *clientcmdapi.Cluster {
	t.Helper()
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(target)
	pass.FlushInterval, pass.ErrorLog = -1, log.New(io.Discard, "", 0)
	if pass.Transport, err = rest.TransportFor(config); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/configmaps/") {
			time.Sleep(wait)
		}
		pass.ServeHTTP(w, r)
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return &clientcmdapi.Cluster{Server: server.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
}

// TestAPIAlikeAndSlower checks that two contexts of one cluster are equivalent, and one whose answers take 5 % longer
// is different. The delay that all have in common is long compared with the noise of this machine.
func TestAPIAlikeAndSlower(t *testing.T) {
	cluster := e2e.Open(t)
	t.Cleanup(func() { cluster.NothingLeft(t) })
	const wait = 200 * time.Millisecond
	config := clientcmdapi.NewConfig()
	config.AuthInfos["nobody"] = &clientcmdapi.AuthInfo{}
	for name, w := range map[string]time.Duration{"one": wait, "again": wait, "slower": wait * 105 / 100} {
		config.Clusters[name] = slowed(t, cluster.Config, w)
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: "nobody"}
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	args := []string{"--suite", "api", "--case", "api/configmap/get", "--blocks", "11", "--duration",
		"1s", "--seed", "1", "-o", "json"}
	for _, name := range []string{"one", "again", "slower"} {
		args = append(args, "--target", "kube:"+name+"?vantage=here&host-network=no&kubeconfig="+file+"&label="+name)
	}
	printed := experiment(t, nil, args...).printed
	var c struct {
		Comparisons []struct {
			Metric, Target, Verdict string
			Change                  float64
		}
	}
	if err := json.Unmarshal(printed, &c); err != nil {
		t.Fatalf("%v: %s", err, printed)
	}
	verdicts := map[string]string{}
	for _, r := range c.Comparisons {
		if r.Metric == "p50" {
			verdicts[r.Target] = r.Verdict
			t.Logf("%s: %s, %+.2f %%", r.Target, r.Verdict, 100*r.Change)
		}
	}
	if verdicts["again"] != "equivalent" || verdicts["slower"] != "different" {
		t.Errorf("%v", verdicts)
	}
}
