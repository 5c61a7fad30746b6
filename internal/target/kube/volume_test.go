package kube

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
)

func TestVolumeManifests(t *testing.T) {
	for name, text := range map[string]string{
		"volume-filesystem": "kube:?storage-class=fast",
		"volume-block":      "kube:?volume-mode=block&size=20Gi&access-mode=ReadWriteMany&volume=reuse",
	} {
		b := plan(t, text, target.Storage)
		b.reuse = b.options.Volume.Use == useReuse
		golden.Check(t, "testdata/"+name+".yaml", manifests(t, b.claim(b.options.Volume.Class, !b.reuse), b.pod(client)))
	}
}

func TestVolumeOptions(t *testing.T) {
	for text, want := range map[string]string{
		"kube:?storage-class=No_Name":               "option storage-class=No_Name: no name in Kubernetes",
		"kube:?access-mode=ReadOnlyMany":            "what is measured is written first",
		"kube:?access-mode=rwo":                     "it is ReadWriteOnce, ReadWriteOncePod or ReadWriteMany",
		"kube:?volume-mode=raw":                     "it is filesystem or block",
		"kube:?size=10":                             "it is a size from 64Mi on",
		"kube:?size=big":                            "it is a size from 64Mi on",
		"kube:?volume=old":                          "it is fresh",
		"kube:?volume=reuse&rotate-nodes=yes":       "a volume that stays is measured on one node",
		"kube:?volume=fresh&rotate-nodes=yes":       "",
		"kube:?storage-class=fast.example&size=1Ti": "",
	} {
		spec, err := target.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parse(spec)
		if (err == nil) != (want == "") || err != nil && (!errors.Is(err, target.ErrSpec) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func class(name string, change func(*storagev1.StorageClass)) storagev1.StorageClass {
	c := storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "disk.example"}
	if change != nil {
		change(&c)
	}
	return c
}

func TestClasses(t *testing.T) {
	byDefault := func(second int64) func(*storagev1.StorageClass) {
		return func(c *storagev1.StorageClass) {
			c.Annotations = map[string]string{annotationDefault: "true"}
			c.CreationTimestamp = metav1.Unix(second, 0)
		}
	}
	all := []storagev1.StorageClass{class("slow", nil), class("old", byDefault(1)), class("new", byDefault(2))}
	for _, test := range []struct {
		classes    []storagev1.StorageClass
		name, want string
		says       string
	}{
		{all, "slow", "slow", ""},
		{all, "", "new", ""},
		{all, "none", "", "the cluster has no storage class none; it has new, old, slow"},
		{all[:1], "", "", "no default storage class; it has slow"},
		{nil, "", "", "it has none"},
	} {
		c, err := classOf(test.classes, test.name)
		if (c != nil) != (test.want != "") || c != nil && c.Name != test.want || (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: %v, %v", test.name, c, err)
		}
	}
}

// boundTo is a claim with its volume, as they should be.
func boundTo(w wanted) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	capacity := corev1.ResourceList{corev1.ResourceStorage: w.Size}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "knotmeter-abcdefgh-1-volume", UID: "c", CreationTimestamp: metav1.Unix(100, 0)},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: new(w.Class), VolumeMode: new(w.mode()), VolumeName: "pv"},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: capacity},
	}
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv", CreationTimestamp: metav1.Unix(101, 0), Annotations: map[string]string{annotationMadeBy: "disk.example"}},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: w.Class, Capacity: capacity, VolumeMode: new(w.mode()), AccessModes: []corev1.PersistentVolumeAccessMode{w.Access},
			ClaimRef: &corev1.ObjectReference{UID: "c", Name: claim.Name}, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		},
	}
	return claim, pv
}

func TestNotAsked(t *testing.T) {
	fast := class("fast", nil)
	for want, change := range map[string]func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume){
		"": func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {},
		`the claim is of the class "slow"`: func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Spec.StorageClassName = new("slow")
		},
		`the claim is of the class ""`: func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.Spec.StorageClassName = nil },
		"it has 1Gi": func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		},
		`the volume is of the class "slow"`: func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Spec.StorageClassName = "slow" },
		"it was made by other.example, and the class is of disk.example": func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Annotations[annotationMadeBy] = "other.example"
		},
		"its mode is Block": func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
		},
		"its access modes are [ReadOnlyMany]": func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
		},
	} {
		w := read(t, "kube:?storage-class=fast").Volume
		claim, pv := boundTo(w)
		change(claim, pv)
		got := strings.Join(notAsked(w, &fast, claim, pv), "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A volume that waits for somebody else's claim is found before ours could get it.
func TestAlreadyThere(t *testing.T) {
	w := read(t, "kube:?storage-class=fast&size=1Gi").Volume
	_, pv := boundTo(w)
	pv.Spec.ClaimRef, pv.Status.Phase = nil, corev1.VolumeAvailable
	smaller := pv.DeepCopy()
	smaller.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("100Mi")
	taken := pv.DeepCopy()
	taken.Spec.ClaimRef = &corev1.ObjectReference{Name: "theirs"}
	for want, volumes := range map[string][]corev1.PersistentVolume{"pv": {*smaller, *pv}, "": {*smaller, *taken}} {
		if got := strings.Join(w.alreadyThere(volumes, "fast"), ","); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := w.alreadyThere([]corev1.PersistentVolume{*pv}, "slow"); len(got) > 0 {
		t.Errorf("of another class: %v", got)
	}
	pv.Status.Phase = "" // it was made just now
	if got := w.alreadyThere([]corev1.PersistentVolume{*pv}, ""); len(got) != 1 {
		t.Errorf("of a class that may not be seen: %v", got)
	}
}

func TestVolumeAilments(t *testing.T) {
	w := read(t, "kube:?storage-class=fast").Volume
	claim, pv := boundTo(w)
	if got := append(claimAilments(claim, claim.DeepCopy()), volumeAilments(pv, pv.DeepCopy())...); len(got) > 0 {
		t.Errorf("nothing happened: %v", got)
	}
	now := metav1.Unix(200, 0)
	larger := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("20Gi")}
	removed, lost, grown, asked := claim.DeepCopy(), claim.DeepCopy(), claim.DeepCopy(), claim.DeepCopy()
	removed.DeletionTimestamp, lost.Status.Phase, grown.Status.Capacity, asked.Spec.Resources.Requests = &now, corev1.ClaimLost, larger, larger
	for want, c := range map[string]*corev1.PersistentVolumeClaim{
		"is being removed by something else": removed, "has lost its volume": lost, "was resized from 10Gi to 20Gi": grown, "is being resized from 0 to 20Gi": asked,
	} {
		if got := claimAilments(claim, c); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%v, want %q", got, want)
		}
	}
	gone, failed, wider := pv.DeepCopy(), pv.DeepCopy(), pv.DeepCopy()
	gone.DeletionTimestamp, wider.Spec.Capacity = &now, larger
	failed.Status.Phase, failed.Status.Message = corev1.VolumeFailed, "the disk is away."
	for want, v := range map[string]*corev1.PersistentVolume{
		"is being removed by something else": gone, "the volume pv is failed: the disk is away": failed, "was resized from 10Gi to 20Gi": wider,
	} {
		if got := volumeAilments(pv, v); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%v, want %q", got, want)
		}
	}
}

func said(of types.UID, kind, reason, message string) corev1.Event {
	return corev1.Event{Type: kind, Reason: reason, Message: message, InvolvedObject: corev1.ObjectReference{UID: of}}
}

// Each of what can stand in the way of a volume is said with what to do, and not before it could have passed.
func TestBlocked(t *testing.T) {
	pending := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
	bound, lost := pending.DeepCopy(), pending.DeepCopy()
	bound.Status.Phase, lost.Status.Phase, lost.Spec.VolumeName = corev1.ClaimBound, corev1.ClaimLost, "pv"
	waits := func(message string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}, Spec: corev1.PodSpec{NodeName: "n"}}
		if message != "" {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message}}
		}
		return p
	}
	const warning, normal = corev1.EventTypeWarning, corev1.EventTypeNormal
	for _, test := range []struct {
		name        string
		claim       *corev1.PersistentVolumeClaim
		pod         *corev1.Pod
		events      []corev1.Event
		after       time.Duration // that it says so
		says        string
		unsupported bool
	}{
		{"lost", lost, nil, nil, 0, "the claim c has lost its volume pv", true},
		{"access mode", pending, waits(""), []corev1.Event{said("c", warning, "ProvisioningFailed", "access mode ReadWriteMany: volumes are of one node")}, 0, "ask for another one with access-mode=", true},
		{"size", pending, waits(""), []corev1.Event{said("c", warning, "ProvisioningFailed", "67108864 bytes are too few for xfs, which takes at least 300Mi")}, 0, "ask for another with size=", true},
		{"mode", pending, waits(""), []corev1.Event{said("c", warning, "ProvisioningFailed", "block volume provisioning is not supported")}, 0, "ask for the other one with volume-mode=", true},
		{"room", pending, waits(""), []corev1.Event{said("c", warning, "ProvisioningFailed", "rpc error: code = ResourceExhausted desc = insufficient capacity")}, trouble, "free some, or ask for less", false},
		{"quota", pending, waits(""), []corev1.Event{said("c", warning, "ProvisioningFailed", "VolumeLimitExceeded: limit exceeded")}, trouble, "a quota of the provider", false},
		{"rights", pending, waits(""), []corev1.Event{said("c", warning, "ProvisioningFailed", "UnauthorizedOperation: You are not authorized")}, trouble, "see to its rights", false},
		{"unknown", pending, waits(""), []corev1.Event{said("c", warning, "ProvisioningFailed", "boom")}, trouble, "ProvisioningFailed: boom; look into the log", false},
		{"nobody", pending, nil,
			[]corev1.Event{said("c", normal, "ExternalProvisioning", "Waiting for a volume to be created by disk.example")}, unanswered,
			"nobody makes the volume of the claim c", true},
		{"somebody", pending, waits(""), []corev1.Event{said("c", normal, "ExternalProvisioning", "Waiting"), said("c", normal, "Provisioning", "at work")}, -1, "", false},
		{"no node taken", pending, nil,
			[]corev1.Event{said("c", normal, "WaitForFirstConsumer", "waiting for first consumer")}, unanswered, "nobody makes the volume", true},
		{"another zone", bound, waits("0/2 nodes are available: 2 node(s) had volume node affinity conflict."), nil, trouble, "name another with client-node=", false},
		{"mount", bound, waits(""), []corev1.Event{said("p", warning, "FailedMount", "unknown filesystem type 'zfs'")}, mountingFor, "see to its fsType", false},
		{"read-only", bound, waits(""), []corev1.Event{said("p", warning, "FailedMount", "MountVolume failed at /a/b, error cannot mount unformatted disk /dev/x as we are manipulating it in read-only mode")}, mountingFor, "FailedMount: cannot mount unformatted disk /dev/x as we are manipulating it in read-only mode; see to the mountOptions", false},
		{"attached elsewhere", bound, waits(""), []corev1.Event{said("p", warning, "FailedAttachVolume", "Multi-Attach error for volume")}, attachingFor, "still attached to another node", false},
		{"another pod's", bound, waits(""), []corev1.Event{said("q", warning, "FailedMount", "no")}, -1, "", false},
	} {
		began := time.Unix(1000, 0)
		w := &wait{asked: anyVolume(), began: began}
		var last *problem
		first := time.Duration(-1)
		for after := time.Duration(0); after <= time.Minute; after += time.Second {
			if p := w.blocked(began.Add(after), test.claim, test.pod, test.events); p != nil {
				last, first = p, after
				break
			}
		}
		if first != test.after || last != nil && !strings.Contains(last.Error(), test.says) {
			t.Errorf("%s: after %v, want %v: %v", test.name, first, test.after, last)
		}
		if last != nil && errors.Is(cannot(last), result.ErrNotSupported) != test.unsupported {
			t.Errorf("%s: not supported: %t", test.name, !test.unsupported)
		}
	}
}

// Of a class's parameters no secret is shown.
func TestParameters(t *testing.T) {
	c := class("fast", func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{
			"type": "gp3", "csi.storage.k8s.io/provisioner-secret-name": "ceph", "adminPassword": "hunter2", "restuserkey": "hunter3", "token": "hunter4",
			"script": "a\nb hunter5", "iops": "4000",
		}
	})
	got := parametersOf(&c)
	if diff := cmp.Diff("adminPassword=(not shown) csi.storage.k8s.io/provisioner-secret-name=(a reference) iops=4000 restuserkey=(not shown) script=(no plain setting) token=(not shown) type=gp3", got); diff != "" {
		t.Error(diff)
	}
}

func TestDriverImage(t *testing.T) {
	container := func(image string, args ...string) corev1.Container { return corev1.Container{Image: image, Args: args} }
	set := appsv1.DaemonSet{}
	set.Spec.Template.Spec.Containers = []corev1.Container{
		container("example/ebs-csi-driver:v1.40"), container("example/livenessprobe:v2"),
		container("example/csi-node-driver-registrar:v2", "--kubelet-registration-path=/var/lib/kubelet/plugins/ebs.csi.aws.com/csi.sock"),
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

// The claims that clean looks for are those that blueprints make, and no others.
func TestOfOurs(t *testing.T) {
	b := plan(t, "kube:", target.Storage)
	b.experiment = "abcdefgh"
	names := []string{b.claimName()}
	b.reuse = true
	names = append(names, b.claimName())
	for _, name := range names {
		if !ofOurs().MatchString(name) {
			t.Errorf("%s is not found", name)
		}
	}
	if i := slices.IndexFunc([]string{"data", "knotmeter-data", "my-knotmeter-abcdefgh-1-volume"}, ofOurs().MatchString); i >= 0 {
		t.Error("a name of somebody else's")
	}
}
