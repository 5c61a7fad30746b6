package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func claimOf(size string, mode corev1.PersistentVolumeMode) *corev1.PersistentVolumeClaim {
	class := "loop-xfs"
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "here",
			UID: "1-2-3", Annotations: map[string]string{selectedNode: "node-2"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeMode: &mode,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			},
		},
	}
}

func classOf(fs string, reclaim corev1.PersistentVolumeReclaimPolicy) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "loop-" + fs}, Provisioner: provisionerName, ReclaimPolicy: &reclaim,
		Parameters: map[string]string{"fsType": fs}, MountOptions: []string{"noatime"},
	}
}

func nodeOf(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{hostname: name}}}
}

func TestVolumeOf(t *testing.T) {
	d := device{path: "/dev/loop3", file: "/volumes/pvc-1-2-3.img", direct: true}
	v := volumeOf(claimOf("1000001", corev1.PersistentVolumeFilesystem),
		classOf("xfs", corev1.PersistentVolumeReclaimDelete), nodeOf("node-2"), d)
	local, capacity := v.Spec.Local, v.Spec.Capacity[corev1.ResourceStorage]
	if v.Name != "pvc-1-2-3" || local.Path != "/dev/loop3" || *local.FSType != "xfs" ||
		capacity.Value() != 1003520 || v.Spec.ClaimRef.UID != "1-2-3" {
		t.Errorf("%+v", v)
	}
	got := v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values
	if !slices.Equal(got, []string{"node-2"}) {
		t.Error(got)
	}
	if !slices.Equal(v.Finalizers, []string{finalizer}) ||
		v.Annotations[deviceAnnotation] != "/dev/loop3" || v.Annotations[directAnnotation] != "true" {
		t.Errorf("%q %q", v.Finalizers, v.Annotations)
	}
	v = volumeOf(claimOf("1Gi", corev1.PersistentVolumeBlock),
		classOf("ext4", corev1.PersistentVolumeReclaimRetain), nodeOf("node-2"), d)
	if v.Spec.Local.FSType != nil || len(v.Spec.MountOptions) > 0 ||
		*v.Spec.VolumeMode != corev1.PersistentVolumeBlock || len(v.Finalizers) > 0 {
		t.Errorf("%+v", v)
	}
}

func TestRefuse(t *testing.T) {
	ext4, xfs := classOf("ext4", corev1.PersistentVolumeReclaimDelete), classOf("xfs",
		corev1.PersistentVolumeReclaimDelete)
	shared := claimOf("1Gi", corev1.PersistentVolumeFilesystem)
	shared.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	copied := claimOf("1Gi", corev1.PersistentVolumeFilesystem)
	copied.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "other"}
	for _, c := range []struct {
		claim *corev1.PersistentVolumeClaim
		class *storagev1.StorageClass
		want  string
	}{
		{claimOf("300Mi", corev1.PersistentVolumeFilesystem), xfs, ""},
		{claimOf("299Mi", corev1.PersistentVolumeFilesystem), xfs, "too few for xfs"},
		{claimOf("1Mi", corev1.PersistentVolumeBlock), xfs, ""},
		{claimOf("1Mi", corev1.PersistentVolumeFilesystem), ext4, ""},
		{shared, ext4, "ReadWriteMany"},
		{copied, ext4, "data source"},
	} {
		err := checkClaim(c.claim, c.class)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, not %q", err, c.want)
		}
	}
}

func TestWaits(t *testing.T) {
	with := func(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		c := claimOf("1Gi", corev1.PersistentVolumeFilesystem)
		change(c)
		return c
	}
	none := ""
	for name, c := range map[string]*corev1.PersistentVolumeClaim{
		"no node":  with(func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil }),
		"bound":    with(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pvc-9" }),
		"no class": with(func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &none }),
		"going":    with(func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} }),
	} {
		if awaitsVolume(c) {
			t.Error(name)
		}
	}
	if !awaitsVolume(claimOf("1Gi", corev1.PersistentVolumeFilesystem)) {
		t.Error("one that waits")
	}
}

func TestOver(t *testing.T) {
	for _, c := range []struct {
		phase   corev1.PersistentVolumePhase
		policy  corev1.PersistentVolumeReclaimPolicy
		deleted bool
		want    bool
	}{
		{corev1.VolumeBound, corev1.PersistentVolumeReclaimDelete, false, false},
		{corev1.VolumeBound, corev1.PersistentVolumeReclaimDelete, true, false},
		{corev1.VolumeReleased, corev1.PersistentVolumeReclaimDelete, false, true},
		{corev1.VolumeReleased, corev1.PersistentVolumeReclaimRetain, false, false},
		{corev1.VolumeAvailable, corev1.PersistentVolumeReclaimDelete, true, true},
	} {
		v := volumeOf(claimOf("1Gi", corev1.PersistentVolumeFilesystem),
			classOf("ext4", c.policy), nodeOf("node-1"), device{})
		v.Status.Phase = c.phase
		if c.deleted {
			v.DeletionTimestamp = &metav1.Time{}
		}
		if got := isReleased(v); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if isReleased(&corev1.PersistentVolume{Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased}}) {
		t.Error("another's volume")
	}
}

// TestAllocate checks that allocate makes a file with all its blocks, and leaves none if there is no space.
func TestAllocate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.img")
	if err := allocate(file, 1<<20); err != nil {
		t.Fatal(err)
	}
	var s syscall.Stat_t
	if err := syscall.Stat(file, &s); err != nil || s.Size != 1<<20 {
		t.Errorf("%d bytes, %v", s.Size, err)
	}
	if err := allocate(file, 1<<60); err == nil {
		t.Error("no error of a size that no disk has")
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file is left: %v", err)
	}
}
