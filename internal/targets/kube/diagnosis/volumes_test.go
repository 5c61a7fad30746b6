package diagnosis

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

func TestVolumeDisruptions(t *testing.T) {
	capacity := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "c"},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: capacity},
	}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"},
		Spec: corev1.PersistentVolumeSpec{Capacity: capacity}}
	if got := append(ClaimDisruptions(claim, claim.DeepCopy()), VolumeDisruptions(pv, pv.DeepCopy())...); len(got) > 0 {
		t.Errorf("nothing happened: %v", got)
	}
	now := metav1.Unix(200, 0)
	larger := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("20Gi")}
	removed, lost, grown, asked := claim.DeepCopy(), claim.DeepCopy(), claim.DeepCopy(), claim.DeepCopy()
	removed.DeletionTimestamp, lost.Status.Phase, grown.Status.Capacity, asked.Spec.Resources.Requests = &now,
		corev1.ClaimLost, larger, larger
	for want, c := range map[string]*corev1.PersistentVolumeClaim{
		"is being removed by something else": removed, "has lost its volume": lost, "was resized from 10Gi to 20Gi": grown,
		"is being resized from 0 to 20Gi": asked,
	} {
		if got := ClaimDisruptions(claim, c); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%v, want %q", got, want)
		}
	}
	gone, failed, wider := pv.DeepCopy(), pv.DeepCopy(), pv.DeepCopy()
	gone.DeletionTimestamp, wider.Spec.Capacity = &now, larger
	failed.Status.Phase, failed.Status.Message = corev1.VolumeFailed, "the disk is away."
	for want, v := range map[string]*corev1.PersistentVolume{
		"is being removed by something else": gone, "the volume pv is failed: the disk is away": failed,
		"was resized from 10Gi to 20Gi": wider,
	} {
		if got := VolumeDisruptions(pv, v); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%v, want %q", got, want)
		}
	}
}

// eventOf returns an event about the object with a UID.
func eventOf(of types.UID, kind, reason, message string) corev1.Event {
	return corev1.Event{Type: kind, Reason: reason, Message: message, InvolvedObject: corev1.ObjectReference{UID: of}}
}

// TestBlocked checks that each problem of a volume is reported with a remedy, and only after its grace time.
func TestBlocked(t *testing.T) {
	pending := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c"},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
	bound, lost := pending.DeepCopy(), pending.DeepCopy()
	bound.Status.Phase, lost.Status.Phase, lost.Spec.VolumeName = corev1.ClaimBound, corev1.ClaimLost, "pv"
	waits := func(message string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}, Spec: corev1.PodSpec{NodeName: "n"}}
		if message != "" {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
				Reason: corev1.PodReasonUnschedulable, Message: message}}
		}
		return p
	}
	const warning, normal = corev1.EventTypeWarning, corev1.EventTypeNormal
	for _, test := range []struct {
		name        string
		claim       *corev1.PersistentVolumeClaim
		pod         *corev1.Pod
		events      []corev1.Event
		after       time.Duration // when it is reported; -1: never
		says        string
		unsupported bool
	}{
		{"lost", lost, nil, nil, 0, "the claim c has lost its volume pv", true},
		{"access mode", pending, waits(""), []corev1.Event{eventOf("c", warning, "ProvisioningFailed",
			"access mode ReadWriteMany: volumes are of one node")}, 0, "ask for another one with access-mode=", true},
		{"size", pending, waits(""), []corev1.Event{eventOf("c", warning, "ProvisioningFailed",
			"67108864 bytes are too few for xfs, which takes at least 300Mi")}, 0, "ask for another with size=", true},
		{"mode", pending, waits(""), []corev1.Event{eventOf("c", warning, "ProvisioningFailed",
			"block volume provisioning is not supported")}, 0, "ask for the other one with volume-mode=", true},
		{"room", pending, waits(""), []corev1.Event{eventOf("c", warning, "ProvisioningFailed",
			"rpc error: code = ResourceExhausted desc = insufficient capacity")}, problemGrace,
			"free some, or ask for less", false},
		{"quota", pending, waits(""), []corev1.Event{eventOf("c", warning, "ProvisioningFailed",
			"VolumeLimitExceeded: limit exceeded")}, problemGrace, "a quota of the provider", false},
		{"rights", pending, waits(""), []corev1.Event{eventOf("c", warning, "ProvisioningFailed",
			"UnauthorizedOperation: You are not authorized")}, problemGrace, "see to its rights", false},
		{"unknown", pending, waits(""), []corev1.Event{eventOf("c", warning, "ProvisioningFailed", "boom")}, problemGrace,
			"ProvisioningFailed: boom; look into the log", false},
		{"nobody", pending, nil,
			[]corev1.Event{eventOf("c", normal, "ExternalProvisioning", "Waiting for a volume to be created by disk.example")},
			provisionerGrace,
			"no provisioner makes the volume of the claim c", true},
		{"somebody", pending, waits(""), []corev1.Event{eventOf("c", normal, "ExternalProvisioning", "Waiting"),
			eventOf("c", normal, "Provisioning", "at work")}, -1, "", false},
		{"no node taken", pending, nil,
			[]corev1.Event{eventOf("c", normal, "WaitForFirstConsumer", "waiting for first consumer")}, provisionerGrace,
			"no provisioner makes the volume", true},
		{"another zone", bound, waits("0/2 nodes are available: 2 node(s) had volume node affinity conflict."), nil,
			problemGrace, "name another with client-node=", false},
		{"mount", bound, waits(""), []corev1.Event{eventOf("p", warning, "FailedMount", "unknown filesystem type 'zfs'")},
			mountGrace, "see to its fsType", false},
		{"read-only", bound, waits(""), []corev1.Event{eventOf("p", warning, "FailedMount",
			"MountVolume failed at /a/b, error cannot mount unformatted disk /dev/x as we are manipulating it in read-only "+
				"mode")}, mountGrace, "FailedMount: cannot mount unformatted disk /dev/x as we are manipulating it in " +
			"read-only mode; see to the mountOptions", false},
		{"attached elsewhere", bound, waits(""), []corev1.Event{eventOf("p", warning, "FailedAttachVolume",
			"Multi-Attach error for volume")}, attachGrace, "still attached to another node", false},
		{"another pod's", bound, waits(""), []corev1.Event{eventOf("q", warning, "FailedMount", "no")}, -1, "", false},
	} {
		began := time.Unix(1000, 0)
		w := NewVolumeWait(manifest.AnyVolume(), began)
		var last *Problem
		first := time.Duration(-1)
		for after := time.Duration(0); after <= time.Minute; after += time.Second {
			if p := w.Problem(began.Add(after), test.claim, test.pod, test.events); p != nil {
				last, first = p, after
				break
			}
		}
		if first != test.after || last != nil && !strings.Contains(last.Error(), test.says) {
			t.Errorf("%s: after %v, want %v: %v", test.name, first, test.after, last)
		}
		if last != nil && errors.Is(ErrorOf(last), result.ErrNotSupported) != test.unsupported {
			t.Errorf("%s: not supported: %t", test.name, !test.unsupported)
		}
	}
}

// TestVolumeWaitOfVault checks that remedies for the volumes of a Vault name the option of their class.
func TestVolumeWaitOfVault(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c"},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
	began := time.Unix(1000, 0)
	for _, message := range []string{"rpc error", `storageclass.storage.k8s.io "fast" not found`} {
		failed := []corev1.Event{{Type: corev1.EventTypeWarning, Reason: "ProvisioningFailed", Message: message,
			InvolvedObject: corev1.ObjectReference{UID: "c"}}}
		for isVault, says := range map[bool]string{true: " vault-storage-class=", false: " storage-class="} {
			w := NewVolumeWait(manifest.Volume{Vault: isVault}, began)
			w.Problem(began, claim, nil, failed)
			if p := w.Problem(began.Add(time.Minute), claim, nil, failed); p == nil || !strings.Contains(p.Error(), says) {
				t.Errorf("%s: %v does not say %q", message, p, says)
			}
		}
	}
}
