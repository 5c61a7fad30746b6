package kube

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// A foreignVolume is a volume of another owner: a directory with a file in it. Kubernetes removes the directory with
// the volume if the reclaim policy is Delete.
type foreignVolume struct {
	dir string
	pv  *corev1.PersistentVolume
}

func newForeignVolume(t *testing.T, class string) foreignVolume {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ledger-")
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o777), os.WriteFile(filepath.Join(dir, "ledger"), []byte("precious"), 0o666))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return foreignVolume{dir, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "test-" + filepath.Base(dir)},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class, Capacity: corev1.ResourceList{corev1.ResourceStorage: manifest.AnyVolume().Size},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}},
		},
	}}
}

type volumeChange func(*corev1.PersistentVolume, *corev1.PersistentVolumeClaim)

// createOnClaim creates the volume as soon as a claim of its class appears.
func (l foreignVolume) createOnClaim(t *testing.T, c *cluster.Cluster, change volumeChange) {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	open := func(ctx context.Context) (watch.Interface, error) {
		return c.CoreV1().PersistentVolumeClaims("").Watch(ctx, metav1.ListOptions{})
	}
	made := make(chan error, 1)
	go func() {
		made <- cluster.Until(ctx, open, func(e watch.Event) (bool, error) {
			claim, ok := e.Object.(*corev1.PersistentVolumeClaim)
			if !ok || ptr.Deref(claim.Spec.StorageClassName, "") != l.pv.Spec.StorageClassName {
				return false, nil
			}
			change(l.pv, claim)
			_, err := c.CoreV1().PersistentVolumes().Create(ctx, l.pv, metav1.CreateOptions{})
			return true, err
		})
	}()
	t.Cleanup(func() {
		end()
		if err := <-made; err != nil {
			t.Errorf("the volume was not made: %v", err)
		}
		_ = c.CoreV1().PersistentVolumes().Delete(context.Background(), l.pv.Name, metav1.DeleteOptions{})
	})
}

func unchanged(*corev1.PersistentVolume, *corev1.PersistentVolumeClaim) {}

// checkIntact checks that the volume has its file and nothing else, and that its reclaim policy is policy.
func (l foreignVolume) checkIntact(t *testing.T, c *cluster.Cluster, policy corev1.PersistentVolumeReclaimPolicy) {
	t.Helper()
	time.Sleep(time.Second) // time for the controllers to remove the volume
	entries, err := os.ReadDir(l.dir)
	text, wrong := os.ReadFile(filepath.Join(l.dir, "ledger"))
	if err := errors.Join(err, wrong); err != nil || string(text) != "precious" || len(entries) != 1 {
		t.Errorf("somebody's data: %q, %v, %v", text, entries, err)
	}
	v, err := c.CoreV1().PersistentVolumes().Get(t.Context(), l.pv.Name, metav1.GetOptions{})
	if err != nil || v.Spec.PersistentVolumeReclaimPolicy != policy {
		t.Errorf("somebody's volume: %+v, %v", v.Spec, err)
	}
}

// TestVolumeOfOthers checks that no harm is done if a claim is bound to a volume of another owner that was created
// after Knotmeter looked for such volumes: nothing is mounted, and the volume outlives the claim.
func TestVolumeOfOthers(t *testing.T) {
	c := admin(t)
	withVolumes(t, c, "")
	storageClass(t, c, "test-bound-at-once", func(s *storagev1.StorageClass) {
		s.Provisioner, s.VolumeBindingMode = "nobody.example", new(storagev1.VolumeBindingImmediate)
	})
	l := newForeignVolume(t, "test-bound-at-once")
	l.createOnClaim(t, c, unchanged)
	k := newTestTarget(t, withVolumes(t, c, "storage-class=test-bound-at-once"))
	_, err := openVolume(t, k)
	t.Log(err)
	for _, words := range []string{
		"was not provisioned for it", "nothing was mounted or written",
		"kubectl patch pv " + l.pv.Name, `"persistentVolumeReclaimPolicy":"Delete"`,
	} {
		if !errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(), words) {
			t.Errorf("it does not say %q", words)
		}
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	l.checkIntact(t, c, corev1.PersistentVolumeReclaimRetain)
	if left := leftovers(t, c); !slices.Equal(left, []string{"volume " + l.pv.Name}) {
		t.Errorf("left: %v", left)
	}
}

// TestVolumeOfOthersStays checks that the claim and its namespace stay, without the right to change volumes, until a
// user with that right cleans up.
func TestVolumeOfOthersStays(t *testing.T) {
	c := admin(t)
	withVolumes(t, c, "")
	storageClass(t, c, "test-stays", func(s *storagev1.StorageClass) {
		s.Provisioner, s.VolumeBindingMode = "nobody.example", new(storagev1.VolumeBindingImmediate)
	})
	const user = "knotmeter-test-stays"
	text := asUser(t, user) + "&storage-class=test-stays"
	defer grant(t, c, user, cluster.Roles(parseOptions(t, text).need(allNeeds())))()
	l := newForeignVolume(t, "test-stays")
	l.createOnClaim(t, c, unchanged)
	k := newTestTarget(t, text)
	_, err := openVolume(t, k)
	closed := k.Close()
	t.Log(err, closed)
	for _, err := range []error{err, closed} {
		for _, words := range []string{"its reclaim policy cannot be changed",
			"kubectl delete pvc -n " + k.claimed.namespace} {
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%v does not say %q", err, words)
			}
		}
	}
	l.checkIntact(t, c, corev1.PersistentVolumeReclaimDelete)
	spec, err := result.ParseSpec(text)
	if err != nil {
		t.Fatal(err)
	}
	if removed, err := Clean(t.Context(), spec, nil, cleanAll()); err == nil || len(removed) > 0 {
		t.Errorf("clean without the right: %v, %v", removed, err)
	}
	l.checkIntact(t, c, corev1.PersistentVolumeReclaimDelete)
	if spec, err = result.ParseSpec(realCluster(t)); err != nil {
		t.Fatal(err)
	}
	removed, err := Clean(t.Context(), spec, nil, cleanAll())
	t.Log(removed, err)
	if len(removed) != 2 || err != nil && !strings.Contains(err.Error(), "kubectl patch pv "+l.pv.Name) {
		t.Errorf("clean with the right: %v, %v", removed, err)
	}
	l.checkIntact(t, c, corev1.PersistentVolumeReclaimRetain)
}

// TestVolumeBesideOthers checks that a claim of a class whose volumes wait for a pod is never bound to an existing
// volume, not even to one that appears at the same time.
func TestVolumeBesideOthers(t *testing.T) {
	c := admin(t)
	withVolumes(t, c, "")
	storageClass(t, c, "test-beside", func(*storagev1.StorageClass) {})
	l := newForeignVolume(t, "test-beside")
	l.createOnClaim(t, c, unchanged)
	k := newTestTarget(t, withVolumes(t, c, "storage-class=test-beside&size=64Mi"))
	site, err := openVolume(t, k)
	if err != nil {
		t.Fatal(err)
	}
	if pv := result.FactOf(site.Facts, "volume"); pv == l.pv.Name {
		t.Errorf("the run is on %s", pv)
	}
	if err := errors.Join(site.Close(t.Context()), k.Close()); err != nil {
		t.Error(err)
	}
	l.checkIntact(t, c, corev1.PersistentVolumeReclaimDelete)
	v, err := c.CoreV1().PersistentVolumes().Get(t.Context(), l.pv.Name, metav1.GetOptions{})
	if err != nil || v.Status.Phase != corev1.VolumeAvailable || v.Spec.ClaimRef != nil {
		t.Errorf("somebody's volume was touched: %+v, %v", v, err)
	}
}

// TestVolumeNotEmpty checks that nothing is overwritten if a provisioner provides a volume with data.
func TestVolumeNotEmpty(t *testing.T) {
	c := admin(t)
	withVolumes(t, c, "")
	storageClass(t, c, "test-not-empty", func(s *storagev1.StorageClass) {
		s.Provisioner, s.VolumeBindingMode = "nobody.example", new(storagev1.VolumeBindingImmediate)
	})
	l := newForeignVolume(t, "test-not-empty")
	l.createOnClaim(t, c, func(v *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
		v.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": "nobody.example"}
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		v.Spec.ClaimRef = &corev1.ObjectReference{
			APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
		}
	})
	k := newTestTarget(t, withVolumes(t, c, "storage-class=test-not-empty"))
	_, err := openVolume(t, k)
	t.Log(err)
	const says = "is not empty, and nothing was written to it: it has ledger"
	if !errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(), says) {
		t.Errorf("%v", err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	l.checkIntact(t, c, corev1.PersistentVolumeReclaimRetain)
}
