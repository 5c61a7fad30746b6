package kube

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	restfake "k8s.io/client-go/rest/fake"

	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
)

// A plainAPI is a fake that answers requests for paths, which it has none of.
type plainAPI struct{ *fake.Clientset }

func (p plainAPI) CoreV1() corev1.CoreV1Interface { return plainCore{p.Clientset.CoreV1()} }

type plainCore struct{ corev1.CoreV1Interface }

func (plainCore) RESTClient() rest.Interface {
	return &restfake.RESTClient{NegotiatedSerializer: scheme.Codecs, Resp: &http.Response{StatusCode: http.StatusNotFound,
		Body: http.NoBody}}
}

// TestLapsedClaim checks what happens if this machine sleeps, so that others may begin on the cluster. Runs in that
// time are invalid. Later sites open if the cluster is free or shared; else Open reports that the target is unavailable
// until the other experiment ends.
func TestLapsedClaim(t *testing.T) {
	for _, test := range []struct {
		name         string
		other, share bool
	}{{name: "free"}, {name: "taken", other: true}, {name: "shared", other: true, share: true}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &cluster.Cluster{Interface: plainAPI{fake.NewClientset()}, Config: &rest.Config{Host: "https://there"}}
				k := newTarget(parseOptions(t, "kube:?namespace=ns"), nil, nil)
				k.reached, k.heartbeat = &reached{named: k.named, cluster: api}, time.Hour
				if _, err := k.Begin(t.Context(), targets.Plan{
					Experiment: "ours", Share: test.share, Placements: []targets.Placement{{}},
				}); err != nil {
					t.Fatal(err)
				}
				defer func() { _ = k.claimed.lease.End(t.Context(), false) }()
				health := k.claimed.withClaimHealth(nil)
				if list := health(t.Context()); len(list) != 0 {
					t.Errorf("at once: %q", list)
				}
				time.Sleep(10 * time.Minute)
				if test.other {
					theirs := targets.Plan{Experiment: "theirs"}.Claim(api.Now()).Text()
					if err := newClaimLease(api, "elsewhere", "y", theirs).Create(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				list := strings.Join(health(t.Context()), "; ")
				busy := test.other && !test.share
				if !strings.HasPrefix(list, "the Lease of the experiment was not renewed for 600 s") ||
					strings.Contains(list, "in use by the experiment theirs") != busy {
					t.Errorf("after the sleep: %q", list)
				}
				_, err := k.Open(t.Context(), nil)
				if errors.Is(err, targets.ErrUnavailable) != busy || errors.Is(err, targets.ErrBusy) != busy {
					t.Errorf("Open: %v", err)
				}
				if test.other {
					err := api.CoordinationV1().Leases("elsewhere").Delete(t.Context(), "knotmeter-y", metav1.DeleteOptions{})
					if err != nil {
						t.Fatal(err)
					}
				}
				if _, err := k.Open(t.Context(), nil); err != nil {
					t.Errorf("Open, when the other has ended: %v", err)
				}
				if list := health(t.Context()); len(list) != 0 {
					t.Errorf("it is said twice: %q", list)
				}
			})
		})
	}
}
