// Package volumes is the storage that a cluster has measured: classes, claims and the volumes that are made for them.
// No volume is mounted, written to or removed that was not provisioned for a claim of Knotmeter's own.
package volumes

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// A Storage is what a target knows of the class that its volumes are of.
type Storage struct {
	api    kubernetes.Interface
	wanted manifest.Volume
	need   cluster.Need
	looked bool                    // for the class
	class  *storagev1.StorageClass // nil if it may not be seen
	err    error                   // why there is none
	reuse  bool
	size   int64 // that may be used of a volume that is reused; 0 until it is known
	claim  bool  // of a volume that is reused, may have been made
	made   bool  // any claim may have been
}

// NewStorage is of volumes as they are wanted. It asks nobody yet.
func NewStorage(api kubernetes.Interface, wanted manifest.Volume, need cluster.Need) *Storage {
	return &Storage{api: api, wanted: wanted, need: need, reuse: wanted.Use == manifest.Reuse}
}

// LookUp finds the class, once. What the cluster does not have Is result.ErrNotSupported.
func (st *Storage) LookUp(ctx context.Context) error {
	if st.looked || st.wanted.Root() {
		return st.err
	}
	unseen, err := cluster.Lacks(ctx, st.api, "", cluster.SeeVolumes)
	if err != nil {
		return err
	}
	if len(unseen) > 0 {
		missing, err := cluster.LackingVolumes(ctx, st.api, st.need.Namespace)
		if err != nil {
			return err
		}
		st.looked, st.err = true, result.NotSupported(cluster.LackText(missing)+
			"; without those on persistentvolumes a claim could be bound to a volume with data, which would be overwritten")
		return st.err
	}
	found, err := st.api.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) { // the claim will tell
		st.looked = true
		return nil
	}
	if err != nil {
		return diagnosis.Explain(err, "")
	}
	st.looked = true
	st.err = st.choose(found.Items)
	return st.err
}

// Forget has the class be looked up again.
func (st *Storage) Forget() { st.looked, st.class, st.err = false, nil, nil }

// choose takes the class that is wanted from those that there are.
func (st *Storage) choose(classes []storagev1.StorageClass) error {
	class, err := classOf(classes, st.wanted)
	if err != nil {
		return result.NotSupported(err.Error())
	}
	st.class = class
	st.reuse = st.reuse || st.wanted.Use == manifest.ByClass && retains(class)
	switch {
	case class.Provisioner == noProvisioner:
		return result.NotSupported(fmt.Sprintf("the class %s has no provisioner: its volumes were made by hand, and "+
			"Knotmeter overwrites no volume that it did not make; name another class with %s", class.Name,
			st.wanted.ClassOption()))
	case st.wanted.Vault && retains(class):
		return result.NotSupported(fmt.Sprintf("the class %s retains volumes, so that each block would leave those of its "+
			"Vault; name another class with %s", class.Name, st.wanted.ClassOption()))
	}
	return nil
}

// className is the class that claims name; "" where only the cluster knows its default.
func (st *Storage) className() string {
	if st.class != nil {
		return st.class.Name
	}
	return st.wanted.Class
}

// Plan gives a site its volume, which is not made yet.
func (st *Storage) Plan(ctx context.Context, plan *manifest.Blueprint) (*Volume, error) {
	if st.wanted.Root() {
		return &Volume{plan: *plan, asked: st.wanted}, nil
	}
	if err := st.LookUp(ctx); err != nil { // which decides whether a volume is reused
		return nil, err
	}
	plan.Reuse = st.reuse
	list, err := st.PlanClaims(ctx, 1, func(_ int, class string, waits bool) *corev1.PersistentVolumeClaim {
		return plan.Claim(class, waits)
	})
	if err != nil {
		return nil, err
	}
	v := list[0]
	st.claim = st.claim || st.reuse
	v.plan, v.keep, v.used = *plan, st.reuse, st.size > 0
	return v, nil
}

// PlanClaims gives so many claims their volumes; none of either is made yet. Each claim is asked for with its number, the
// name of the class, and whether that waits for a node to be chosen.
func (st *Storage) PlanClaims(
	ctx context.Context, n int, claim func(i int, class string, waits bool) *corev1.PersistentVolumeClaim,
) ([]*Volume, error) {
	if err := st.LookUp(ctx); err != nil {
		return nil, err
	}
	if !st.claim {
		if err := st.vacant(ctx); err != nil {
			return nil, err
		}
	}
	st.made = true
	asked := st.wanted
	asked.Class = st.className()
	var list []*Volume
	for i := range n {
		order := claim(i, asked.Class, waits(st.class))
		list = append(list, &Volume{api: st.api, order: order, class: st.class, asked: asked})
	}
	return list, nil
}

// vacant returns an error if a claim would be bound to a volume that is there already.
func (st *Storage) vacant(ctx context.Context) error {
	var names []string
	err := eachVolume(ctx, st.api, func(v *corev1.PersistentVolume) {
		if alreadyThere(st.wanted, v, st.className()) {
			names = append(names, v.Name)
		}
	})
	if err != nil || len(names) == 0 {
		return diagnosis.Explain(err, "")
	}
	slices.Sort(names)
	class := cmp.Or(st.className(), result.Unknown)
	return result.NotSupported(fmt.Sprintf("the class %s has volumes that are available (%s): a claim would be bound to "+
		"one of them instead of a new one, and what is on it would be lost; ask for a larger size= than theirs, or name "+
		"another %s", class, inspection.List(names), st.wanted.ClassOption()))
}

// Made says whether any claim may have been made.
func (st *Storage) Made() bool { return st != nil && st.made }

// HostVolume is the volume as the runs of a block have it.
func (st *Storage) HostVolume(v *Volume) host.Volume {
	offer := host.Volume{Path: v.asked.Path(), Device: v.found.Device, Size: v.usable(), Kept: v.identity()}
	if v.keep {
		// What is free later is what the files of earlier blocks leave.
		if st.size == 0 {
			st.size = offer.Size
		}
		offer.Size = st.size
	}
	return offer
}

// RemoveReused removes the volume that was for all blocks of an experiment.
func (st *Storage) RemoveReused(ctx context.Context, namespace, experiment string) error {
	if st == nil || !st.claim || namespace == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, goneTime)
	defer cancel()
	plan := manifest.Blueprint{Experiment: experiment, Reuse: true}
	return removeClaim(ctx, st.api, namespace, plan.ClaimName())
}

// Facts are those of the class that the volumes of runs are of; none where the options say nothing of volumes.
func (st *Storage) Facts(ctx context.Context, sets []appsv1.DaemonSet) []result.Fact {
	w := st.wanted
	if !w.Given {
		return nil
	}
	if w.Root() {
		return []result.Fact{{Name: "volume-rule", Value: rootRule}, {Name: "volume-size-asked", Value: w.Size.String()}}
	}
	err := st.LookUp(ctx)
	facts := []result.Fact{
		{Name: "storage-class", Value: cmp.Or(st.className(), result.Unknown)},
		{Name: "volume-mode-asked", Value: string(w.Mode())},
		{Name: "access-mode-asked", Value: string(w.Access)}, {Name: "volume-size-asked", Value: w.Size.String()},
		{Name: "volume-rule",
			Value: map[bool]string{false: "a new one for each block", true: "one for all blocks"}[st.reuse]},
	}
	if err != nil || st.class == nil {
		return append(facts, result.Fact{Name: "provisioner", Value: result.Unknown})
	}
	return append(facts, inspection.ClassFacts(st.class, sets)...)
}
