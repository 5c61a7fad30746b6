package kube

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
)

// withVolumes returns the text of a target with options, or skips the test if the cluster lacks the test cluster's
// storage classes.
func withVolumes(t *testing.T, c *cluster.Cluster, options string) string {
	t.Helper()
	text := realCluster(t)
	_, err := c.StorageV1().StorageClasses().Get(t.Context(), "loop-ext4", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		t.Skipf("the cluster has not the test cluster's classes of volumes: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return text + "&" + options
}

func openVolume(t *testing.T, k *kubeTarget) (targets.Single, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return targets.OpenOne(ctx, k, targets.Placement{Volume: true})
}

// TestVolumeSites checks that volumes of each kind are mounted in a pod, are as requested, can be written, and are
// removed with the site.
func TestVolumeSites(t *testing.T) {
	c := admin(t)
	t.Run("all", func(t *testing.T) {
		for name, test := range map[string]struct{ options, filesystem string }{
			"ext4":  {"storage-class=loop-ext4&size=64Mi", "ext4"},
			"xfs":   {"storage-class=loop-xfs&size=300Mi", "xfs"},
			"block": {"storage-class=loop-ext4&size=64Mi&volume-mode=block&access-mode=ReadWriteOncePod", "none"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				checkVolumeSite(t, c, withVolumes(t, c, test.options), test.filesystem)
			})
		}
	})
	if left := leftovers(t, c); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func checkVolumeSite(t *testing.T, c *cluster.Cluster, text, filesystem string) {
	t.Helper()
	k := newTestTarget(t, text)
	defer func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := k.Supports(targets.Placement{Volume: true}); err != nil {
		t.Error(err)
	}
	site, err := openVolume(t, k)
	if err != nil {
		t.Fatal(err)
	}
	pv := result.FactOf(site.Facts, "volume")
	if site.Server != nil || site.Volume.Path != k.options.Volume.Path() || site.Volume.Size < 20<<20 ||
		site.Volume.Device != k.options.Volume.Block || site.Volume.Kept == "" {
		t.Errorf("%+v", site.Pair)
	}
	if got := result.FactOf(site.Facts, "filesystem"); got != filesystem {
		t.Errorf("the file system is %s, not %s: %+v", got, filesystem, site.Facts)
	}
	var out bytes.Buffer
	fio := []string{"fio", "--name=x", "--rw=write", "--bs=64k", "--size=1m", "--direct=1", "--ioengine=libaio",
		"--filename=" + site.Volume.Path}
	if !site.Volume.Device {
		fio[len(fio)-1] += "/x"
	}
	if err := site.Client.Run(t.Context(), host.Cmd{Args: fio, Stdout: &out, Stderr: &out}); err != nil &&
		!errors.Is(err, host.ErrNoCommand) {
		t.Errorf("%v: %s", err, out.String())
	}
	if ill := site.Health(t.Context()); len(ill) > 0 || len(site.Warnings) > 0 {
		t.Errorf("%v; %v", ill, site.Warnings)
	}
	if err := site.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := c.CoreV1().PersistentVolumes().Get(t.Context(), pv, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the volume %q is not gone: %v", pv, err)
	}
}

// TestVolumeRoot checks that the root directory of a container can be written, is not on a volume, and needs no rights
// on volumes.
func TestVolumeRoot(t *testing.T) {
	c := admin(t)
	n := namespaceFor(t, c, "restricted")
	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "some"}, Spec: corev1.LimitRangeSpec{
		Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer,
			Max: corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("100Mi")}}},
	}}
	if _, err := c.CoreV1().LimitRanges(n).Create(t.Context(), limits, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	text := realCluster(t) + "&volume=root&namespace=" + n
	k := newTestTarget(t, text+"&size=64Mi")
	if err := k.Supports(targets.Placement{Volume: true}); err != nil {
		t.Error(err)
	}
	site, err := openVolume(t, k)
	if err != nil {
		t.Fatal(err)
	}
	if v := site.Volume; v.Path != "/tmp" || v.Device || v.Size <= 0 || v.Size > 64<<20 || v.Kept == "" {
		t.Errorf("%+v", v)
	}
	for fact, want := range map[string]string{"filesystem": "overlay", "backing": "overlay"} {
		if got := result.FactOf(site.Facts, fact); got != want {
			t.Errorf("%s is %q, not %q: %+v", fact, got, want, site.Facts)
		}
	}
	var out bytes.Buffer
	fio := []string{"fio", "--name=x", "--rw=write", "--bs=64k", "--size=1m", "--direct=1", "--ioengine=libaio",
		"--filename=/tmp/x"}
	if err := site.Client.Run(t.Context(), host.Cmd{Args: fio, Stdout: &out, Stderr: &out}); err != nil &&
		!errors.Is(err, host.ErrNoCommand) {
		t.Errorf("%v: %s", err, out.String())
	}
	if ill := site.Health(t.Context()); len(ill) > 0 || len(site.Warnings) > 0 {
		t.Errorf("%v; %v", ill, site.Warnings)
	}
	if err := errors.Join(site.Close(t.Context()), k.Close()); err != nil {
		t.Error(err)
	}
	k = newTestTarget(t, text+"&size=1Gi")
	if _, err := openVolume(t, k); err == nil || !strings.Contains(err.Error(), "size=") {
		t.Errorf("more than the LimitRange allows: %v", err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if left := leftovers(t, c); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestVolumeReused checks that a reused volume is the same in each block, and is removed with the target.
func TestVolumeReused(t *testing.T) {
	c := admin(t)
	k := newTestTarget(t, withVolumes(t, c, "storage-class=loop-ext4&size=64Mi&volume=reuse"))
	var seen []host.Volume
	for range 2 {
		site, err := openVolume(t, k)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, site.Volume)
		if err := site.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if seen[0] != seen[1] || seen[0].Kept == "" {
		t.Errorf("%+v", seen)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if left := leftovers(t, c); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// storageClass creates a storage class until the test ends.
func storageClass(t *testing.T, c *cluster.Cluster, name string, change func(*storagev1.StorageClass)) {
	t.Helper()
	made := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "test.knotmeter.dev/loop",
		Parameters:        map[string]string{"fsType": "ext4"},
		VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}
	change(made)
	if _, err := c.StorageV1().StorageClasses().Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.StorageV1().StorageClasses().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// TestVolumeFaults checks that what prevents a volume is reported within seconds, with a remedy, and that nothing is
// left.
func TestVolumeFaults(t *testing.T) {
	c := admin(t)
	withVolumes(t, c, "")
	storageClass(t, c, "test-nobody", func(s *storagev1.StorageClass) {
		s.Provisioner, s.VolumeBindingMode = "nobody.example", new(storagev1.VolumeBindingImmediate)
	})
	storageClass(t, c, "test-static", func(s *storagev1.StorageClass) { s.Provisioner = "kubernetes.io/no-provisioner" })
	storageClass(t, c, "test-there", func(*storagev1.StorageClass) {})
	storageClass(t, c, "test-read-only", func(s *storagev1.StorageClass) { s.MountOptions = []string{"ro"} })
	storageClass(t, c, "test-no-mount",
		func(s *storagev1.StorageClass) { s.MountOptions = []string{"there-is-no-such-option"} })
	createForeignVolume(t, c, "test-there")
	t.Run("all", func(t *testing.T) {
		for name, test := range map[string]struct {
			options     string
			quota       bool
			unsupported bool
			says        []string
		}{
			"no class": {"storage-class=there-is-none", false, true,
				[]string{"no storage class there-is-none", "loop-ext4"}},
			"no default": {"size=64Mi", false, true, []string{"no default storage class", "storage-class="}},
			"access mode": {"storage-class=loop-ext4&access-mode=ReadWriteMany&size=64Mi", false, true,
				[]string{"ReadWriteMany", "access-mode="}},
			"too small": {"storage-class=loop-xfs&size=64Mi", false, true, []string{"too few for xfs", "size="}},
			"no room":   {"storage-class=loop-ext4&size=100Ti", false, false, []string{"is not made", "size="}},
			"quota":     {"storage-class=loop-ext4&size=1Gi", true, false, []string{"exceeded quota", "size="}},
			"nobody": {"storage-class=test-nobody&size=64Mi", false, true,
				[]string{"no provisioner makes the volume", "nobody.example"}},
			"no provider": {"storage-class=test-static&size=64Mi", false, true, []string{"has no provisioner"}},
			"somebody's": {"storage-class=test-there&size=64Mi", false, true,
				[]string{"volumes that are available", "would be lost"}},
			"read-only": {"storage-class=test-read-only&size=64Mi", false, false, []string{"read-only", "mountOptions"}},
			"cannot mount": {"storage-class=test-no-mount&size=64Mi", false, false,
				[]string{"does not come into pod", "FailedMount"}},
		} {
			t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
				t.Parallel()
				n := namespaceFor(t, c, "restricted")
				if test.quota {
					hard := corev1.ResourceList{"requests.storage": resource.MustParse("100Mi")}
					if _, err := c.CoreV1().ResourceQuotas(n).Create(t.Context(),
						&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "few"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}},
						metav1.CreateOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				k := newTestTarget(t, withVolumes(t, c, test.options)+"&namespace="+n)
				began := time.Now()
				_, err := openVolume(t, k)
				t.Logf("after %.1f s: %v", time.Since(began).Seconds(), err)
				if err == nil || errors.Is(err, result.ErrNotSupported) != test.unsupported {
					t.Errorf("not supported: %v", errors.Is(err, result.ErrNotSupported))
				}
				for _, words := range test.says {
					if err != nil && !strings.Contains(err.Error(), words) {
						t.Errorf("it does not say %q", words)
					}
				}
				if err := k.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	})
	if left := leftovers(t, c); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// createForeignVolume creates a volume of another owner, and checks at the end of the test that it is unchanged.
func createForeignVolume(t *testing.T, c *cluster.Cluster, class string) {
	t.Helper()
	made, err := c.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "test-somebodys"},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/there-is-none"},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		now, err := c.CoreV1().PersistentVolumes().Get(context.Background(), made.Name, metav1.GetOptions{})
		if err != nil || now.Spec.ClaimRef != nil || now.Status.Phase != corev1.VolumeAvailable {
			t.Errorf("somebody's volume was touched: %+v, %v", now, err)
		}
		if err := c.CoreV1().PersistentVolumes().Delete(context.Background(), made.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	for range 100 { // until the controller has processed it
		if now, err := c.CoreV1().PersistentVolumes().Get(t.Context(), made.Name, metav1.GetOptions{}); err == nil &&
			now.Status.Phase == corev1.VolumeAvailable {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error("the volume is not available")
}

// TestVolumeRetained checks that all blocks use one volume if the class retains volumes. Runs and clean name it, and
// neither removes it.
func TestVolumeRetained(t *testing.T) {
	c := admin(t)
	text := withVolumes(t, c, "storage-class=loop-retain&size=64Mi")
	k := newTestTarget(t, text)
	site, err := openVolume(t, k)
	if err != nil {
		t.Fatal(err)
	}
	pv := result.FactOf(site.Facts, "volume")
	command := "kubectl delete pv " + pv
	if site.Volume.Kept == "" || !strings.Contains(result.FactOf(site.Facts, "volume-retained"), command) ||
		!strings.Contains(result.Joined(site.Warnings), command) {
		t.Errorf("%+v, %v", site.Volume, site.Warnings)
	}
	if err := errors.Join(site.Close(t.Context()), k.Close()); err != nil {
		t.Error(err)
	}
	spec, err := result.ParseSpec(text)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 { // the volume is released a moment after its claim is removed
		if now, err := c.CoreV1().PersistentVolumes().Get(t.Context(), pv, metav1.GetOptions{}); err != nil ||
			now.Status.Phase == corev1.VolumeReleased {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if removed, err := Clean(t.Context(), spec, nil, cleanAll()); err == nil ||
		!strings.Contains(err.Error(), command) || len(removed) > 0 {
		t.Errorf("clean: %v, %v", removed, err)
	}
	kept, err := c.CoreV1().PersistentVolumes().Get(t.Context(), pv, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("the volume is not there any more: %v", err)
	}
	if err := c.CoreV1().PersistentVolumes().Delete(t.Context(), pv, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := cluster.AwaitGone(ctx, cluster.ByName(pv), c.CoreV1().PersistentVolumes().List,
		c.CoreV1().PersistentVolumes().Watch); err != nil {
		t.Error(err)
	}
	// Its storage stays, as at a cloud provider.
	device, file := kept.Annotations["test.knotmeter.dev/device"], kept.Annotations["test.knotmeter.dev/file"]
	if out, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if err := os.Remove(file); err != nil {
		t.Error(err)
	}
}

// TestVolumeRemoved checks that a run is invalid if its claim or volume is removed by something other than Knotmeter.
func TestVolumeRemoved(t *testing.T) {
	c := admin(t)
	k := newTestTarget(t, withVolumes(t, c, "storage-class=loop-ext4&size=64Mi"))
	site, err := openVolume(t, k)
	if err != nil {
		t.Fatal(err)
	}
	pv := result.FactOf(site.Facts, "volume")
	v, err := c.CoreV1().PersistentVolumes().Get(t.Context(), pv, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claims, name := c.CoreV1().PersistentVolumeClaims(v.Spec.ClaimRef.Namespace), v.Spec.ClaimRef.Name
	if err := claims.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if ill := strings.Join(site.Health(t.Context()), "; "); !strings.Contains(ill,
		"the claim "+name+" is being removed by something else") {
		t.Errorf("%q", ill)
	}
	if _, err := claims.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if ill := strings.Join(site.Health(t.Context()), "; "); !strings.Contains(ill,
		"the claim "+name+" was removed by something else") {
		t.Errorf("%q", ill)
	}
	if err := errors.Join(site.Close(t.Context()), k.Close()); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := cluster.AwaitGone(ctx, cluster.ByName(pv), c.CoreV1().PersistentVolumes().List,
		c.CoreV1().PersistentVolumes().Watch); err != nil {
		t.Error(err)
	}
}

// TestVolumeRBAC checks that the printed rights suffice for storage, and that without each of them a run or a fact is
// missing.
func TestVolumeRBAC(t *testing.T) {
	c := admin(t)
	withVolumes(t, c, "")
	given := namespaceFor(t, c, "restricted")
	const user = "knotmeter-test-storage"
	text := asUser(t, user) + "&namespace=" + given +
		"&client-node=node-1&server-node=node-2&storage-class=loop-ext4&size=64Mi"
	for _, left := range []string{"", "persistentvolumeclaims", "storageclasses", "persistentvolumes"} {
		t.Run("without "+left, func(t *testing.T) {
			docs := cluster.Roles(parseOptions(t, text).need(allNeeds()))
			for i := range docs {
				docs[i] = withoutRule(docs[i], left)
			}
			defer grant(t, c, user, docs)()
			k := newTestTarget(t, text)
			site, err := openVolume(t, k)
			switch {
			case left == "persistentvolumeclaims":
				if err == nil || !strings.Contains(err.Error(), "may not create persistentvolumeclaims") {
					t.Errorf("%v", err)
				}
			case left == "persistentvolumes":
				if !errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(), "lacks rights on persistentvolumes "+
					"(get, list); ") {
					t.Errorf("%v", err)
				}
			case err != nil:
				t.Error(err)
			case (result.FactOf(k.reached.storage.Facts(t.Context(), nil),
				"provisioner") == result.Unknown) != (left == "storageclasses"), len(site.Warnings) > 0:
				t.Errorf("facts %v, warnings %v", site.Facts, site.Warnings)
			}
			if err == nil {
				err = site.Close(t.Context())
			} else {
				err = nil
			}
			if err := errors.Join(err, k.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	if left := leftovers(t, c); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// withoutRule returns a role without the rule for a resource.
func withoutRule(document any, resource string) any {
	keep := func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
		return slices.DeleteFunc(slices.Clone(rules), func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Resources,
				resource)
		})
	}
	switch d := document.(type) {
	case rbacv1.Role:
		d.Rules = keep(d.Rules)
		return d
	case rbacv1.ClusterRole:
		d.Rules = keep(d.Rules)
		return d
	}
	return document
}
