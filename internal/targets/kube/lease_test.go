package kube

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
)

// TestLapsedLease checks that a Lease that was removed, or not renewed for leaseDuration, has lapsed. The reason is
// returned once, and the Lease can be created again.
func TestLapsedLease(t *testing.T) {
	nothing := func(*testing.T, *fake.Clientset) {}
	for name, test := range map[string]struct {
		renewal time.Duration
		lose    func(*testing.T, *fake.Clientset)
		outage  time.Duration // outage of the API server, from the start
		wait    time.Duration
		says    string
	}{
		"renewed":            {renewInterval, nothing, 0, time.Hour, ""},
		"one heartbeat lost": {renewInterval, nothing, 45 * time.Second, 3 * time.Minute, ""},
		"removed": {renewInterval, func(t *testing.T, api *fake.Clientset) {
			err := api.CoordinationV1().Leases("ns").Delete(t.Context(), "knotmeter-x", metav1.DeleteOptions{})
			if err != nil {
				t.Error(err)
			}
		}, 0, time.Minute, "the Lease of the experiment was removed"},
		"the API server was away": {renewInterval, nothing, 3*time.Minute + time.Second, 3 * time.Minute,
			"was not renewed for 180 s, and counts for 120 s"},
		"asleep, and asked before the next heartbeat": {time.Hour, nothing, 0, 10 * time.Minute, "was not renewed for 600 s"},
		"asleep, and renewed before it is asked": {10 * time.Minute, nothing, 0, 11 * time.Minute,
			"was not renewed for 600 s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := fake.NewClientset()
				l := newClaimLease(&cluster.Cluster{Interface: api}, "ns", "x", "{}")
				if err := l.Create(t.Context()); err != nil {
					t.Fatal(err)
				}
				back := time.Now().Add(test.outage)
				api.PrependReactor("patch", "leases", func(k8stesting.Action) (bool, runtime.Object, error) {
					return time.Now().Before(back), nil, errors.New("no route to host")
				})
				l.Renew(test.renewal)
				defer l.stop()
				test.lose(t, api)
				time.Sleep(test.wait)
				synctest.Wait()
				why := l.LapseReason()
				if (why == "") != (test.says == "") || !strings.Contains(why, test.says) {
					t.Fatalf("it says %q, want %q", why, test.says)
				}
				time.Sleep(2 * time.Second) // until the API server is back
				if err := l.Reclaim(t.Context()); err != nil {
					t.Fatal(err)
				}
				if again := l.LapseReason(); again != "" {
					t.Errorf("it says it again: %q", again)
				}
				_, err := api.CoordinationV1().Leases("ns").Get(t.Context(), "knotmeter-x", metav1.GetOptions{})
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}
