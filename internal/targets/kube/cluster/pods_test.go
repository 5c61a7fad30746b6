package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func podNamed(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "1"}}
}

// TestRelist checks that pods that are no longer listed after an interruption count as removed.
func TestRelist(t *testing.T) {
	w := newPodWatch(2)
	w.pods = map[string]*corev1.Pod{"a": podNamed("a"), "b": podNamed("b")}
	began := map[string]*corev1.Pod{"a": podNamed("a"), "b": podNamed("b")}
	w.relist([]corev1.Pod{*podNamed("a")})
	if got := w.Problems(began); len(got) != 1 || !strings.HasPrefix(got[0], "pod b was removed") {
		t.Errorf("%q", got)
	}
	w.relist([]corev1.Pod{})
	if done, err := w.allGone(); !done || err != nil {
		t.Errorf("%v, %v", done, err)
	}
}

// TestGone checks that AwaitGone returns when the last listed object is deleted, at once if there is none, and with an
// error at its deadline.
func TestGone(t *testing.T) {
	api := fake.NewClientset(podNamed("a"), podNamed("b"))
	pods := api.CoreV1().Pods("ns")
	go func() {
		for _, name := range []string{"a", "b"} {
			for len(api.Actions()) < 2 { // listed and watched
				time.Sleep(time.Millisecond)
			}
			if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	}()
	if err := AwaitGone(t.Context(), metav1.ListOptions{}, pods.List, pods.Watch); err != nil {
		t.Error(err)
	}
	if left, err := pods.List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	if err := AwaitGone(t.Context(), metav1.ListOptions{}, pods.List, pods.Watch); err != nil {
		t.Errorf("what was never there: %v", err)
	}
	if _, err := pods.Create(t.Context(), podNamed("c"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	limited, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := AwaitGone(limited, metav1.ListOptions{}, pods.List, pods.Watch); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("what stays: %v", err)
	}
}
