package volumes

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

// inPages makes client list volumes in two pages, as an API server does; the last volume is v.
func inPages(t *testing.T, client *fake.Clientset, v *volumeObject) {
	client.PrependReactor("list", "persistentvolumes", func(a k8stesting.Action) (bool, runtime.Object, error) {
		options := a.(k8stesting.ListActionImpl).ListOptions
		if options.Limit == 0 {
			t.Error("all volumes were asked for at once")
		}
		if options.Continue == "" {
			return true, &corev1.PersistentVolumeList{ListMeta: metav1.ListMeta{Continue: "more"}}, nil
		}
		return true, &corev1.PersistentVolumeList{Items: []corev1.PersistentVolume{*v}}, nil
	})
}

// TestPages checks that volumes beyond the first page of a list count like the others.
func TestPages(t *testing.T) {
	t.Run("vacant", func(t *testing.T) {
		client, w := fake.NewClientset(), wanted("10Gi")
		_, v := boundTo(w)
		v.Spec.ClaimRef = nil
		inPages(t, client, v)
		err := (&Storage{api: client, spec: w}).checkNoneAvailable(t.Context())
		if !errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(), "available (pv)") {
			t.Error(err)
		}
	})
	t.Run("secure", func(t *testing.T) {
		claim, v := foreignPair()
		client := fake.NewClientset(claim, v)
		inPages(t, client, v)
		if err := retainForeign(t.Context(), client, claim); err != nil || len(writes(client)) != 1 {
			t.Errorf("%v, %q", err, writes(client))
		}
	})
	t.Run("staying", func(t *testing.T) {
		client := fake.NewClientset()
		_, v := foreignPair()
		v.Spec.PersistentVolumeReclaimPolicy, v.Status.Phase = corev1.PersistentVolumeReclaimRetain, corev1.VolumeReleased
		inPages(t, client, v)
		err := CheckRetained(t.Context(), client)
		if err == nil || !strings.Contains(err.Error(), "the volume pv was bound") {
			t.Error(err)
		}
	})
}
