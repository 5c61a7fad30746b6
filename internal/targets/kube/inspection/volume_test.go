package inspection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// TestParameters checks that the parameters of a class are shown without secrets.
func TestParameters(t *testing.T) {
	c := storagev1.StorageClass{Parameters: map[string]string{
		"type": "gp3", "csi.storage.k8s.io/provisioner-secret-name": "ceph", "adminPassword": "hunter2",
		"restuserkey": "hunter3", "token": "hunter4",
		"script": "a\nb hunter5", "iops": "4000",
	}}
	got := parametersOf(&c)
	if diff := cmp.Diff("adminPassword=(not shown) csi.storage.k8s.io/provisioner-secret-name=(a reference) iops=4000 "+
		"restuserkey=(not shown) script=(no plain setting) token=(not shown) type=gp3", got); diff != "" {
		t.Error(diff)
	}
}

func TestDriverImage(t *testing.T) {
	container := func(image string, args ...string) corev1.Container { return corev1.Container{Image: image, Args: args} }
	set := appsv1.DaemonSet{}
	set.Spec.Template.Spec.Containers = []corev1.Container{
		container("example/ebs-csi-driver:v1.40"), container("example/livenessprobe:v2"),
		container("example/csi-node-driver-registrar:v2",
			"--kubelet-registration-path=/var/lib/kubelet/plugins/ebs.csi.aws.com/csi.sock"),
	}
	other := appsv1.DaemonSet{}
	other.Spec.Template.Spec.Containers = []corev1.Container{container("example/cni:v1")}
	if got := driverImage("ebs.csi.aws.com", []appsv1.DaemonSet{other, set}); got != "example/ebs-csi-driver:v1.40" {
		t.Error(got)
	}
	if got := driverImage("none.example", []appsv1.DaemonSet{other, set}); got != "" {
		t.Error(got)
	}
}

// TestTopology checks that a volume without a node affinity has no known topology.
func TestTopology(t *testing.T) {
	in := &corev1.PersistentVolume{}
	in.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a", "b"}}}}}}}
	for want, pv := range map[string]*corev1.PersistentVolume{"none given": {}, "zone in a,b": in} {
		if got := Topology(pv); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
