package kubeapi

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/test/e2e"
)

// startProxy starts a proxy in front of an API server and returns its endpoint. intercept returns true if it has
// answered the request.
func startProxy(t *testing.T, e host.Endpoint, intercept func(w http.ResponseWriter, body []byte) bool) host.Endpoint {
	t.Helper()
	target, err := url.Parse(e.URL)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(e.CA)
	pair, err := tls.X509KeyPair(e.Secret.Cert, e.Secret.Key)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(target)
	pass.FlushInterval = -1
	pass.ErrorLog = log.New(io.Discard, "", 0)
	pass.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}},
		ForceAttemptHTTP2: true}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if intercept(w, body) {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		pass.ServeHTTP(w, r)
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	e.URL, e.Secret = server.URL, host.Secret{}
	e.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return e
}

// number matches the number of a patch of the schedule.
var number = regexp.MustCompile(`"knotmeter\.dev/n":"([0-9]+)"`)

// TestFaultsAsScheduled checks that a result has exactly the faults of a proxy, and none of them as a fast answer. The
// proxy delays every patch by 50 ms and, of each ten, refuses one with 429, one with 500 and drops one.
func TestFaultsAsScheduled(t *testing.T) {
	const delay = 50 * time.Millisecond
	real := realServer(t)
	for version, name := range map[int]string{1: "HTTP1", 2: "HTTP2"} {
		t.Run(name, func(t *testing.T) {
			e := startProxy(t, real, func(w http.ResponseWriter, body []byte) bool {
				m := number.FindSubmatch(body)
				if m == nil {
					return false // not a patch of the schedule
				}
				time.Sleep(delay)
				switch n, _ := strconv.Atoi(string(m[1])); n % 10 {
				case 3:
					w.Header().Set("Retry-After", "1")
					w.WriteHeader(http.StatusTooManyRequests)
				case 5:
					w.WriteHeader(http.StatusInternalServerError)
				case 7:
					panic(http.ErrAbortHandler)
				default:
					return false
				}
				return true
			})
			e.HTTP = version
			w := call(t, e, "configmap/patch")
			w.Times = family.Times{Warmup: 500 * time.Millisecond, Window: 2 * time.Second} // patches 10 to 49
			r, err := Run(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			var dropped uint64
			for _, n := range r.Total.Errors {
				dropped += n
			}
			if r.Planned != 40 || r.Total.OK != 28 || r.Total.Statuses[429] != 4 ||
				r.Total.Statuses[500] != 4 || dropped != 4 || r.RetryAfter != 4 {
				t.Errorf("%d planned, %+v, %d asked to wait", r.Planned, r.Total, r.RetryAfter)
			}
			h, err := netload.DecodeHistogram(r.Total.Latency)
			if err != nil || h.Count() != 28 || h.Min() < 0.99*delay.Seconds() {
				t.Errorf("%d latencies from %g s on, %v", h.Count(), h.Min(), err)
			}
			nothingLeft(t, real)
		})
	}
}

// TestRestart checks that the restart of an API server causes failures that end, and leaves nothing.
func TestRestart(t *testing.T) {
	e := realServer(t)
	e2e.NeedParts(t)
	restarted, kubeconfig := make(chan error, 1), e2e.Kubeconfig(t)
	go func() {
		time.Sleep(1500 * time.Millisecond)
		restarted <- e2e.Command(kubeconfig, "restart", "kube-apiserver").Run()
	}()
	w := call(t, e, "configmap/create:rate=10") // too few requests to call the outage distress
	w.Times = family.Times{Warmup: 0, Window: 12 * time.Second}
	r, err := Run(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-restarted; err != nil {
		t.Fatal(err)
	}
	last := len(r.Steps) - 1
	var late uint64
	for _, n := range r.Steps[last-10:] {
		late += n
	}
	if r.Total.Failed() == 0 || r.Total.OK == 0 || r.Total.OK+r.Total.Failed() != r.Planned || late == 0 {
		t.Errorf("%+v, %d answered in the last second", r.Total, late)
	}
	nothingLeft(t, e)
}
