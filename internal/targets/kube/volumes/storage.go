// Package volumes provides the volumes that storage is measured on: it finds the storage class, and creates and deletes
// claims. It mounts, writes to and removes only volumes that were provisioned for its own claims.
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

// A Storage holds the storage class of a target and creates its volumes.
type Storage struct {
	api           kubernetes.Interface
	spec          manifest.Volume // what the options ask for
	need          cluster.RightsScope
	lookedUp      bool                    // class and err are set
	class         *storagev1.StorageClass // nil if classes cannot be read
	err           error                   // why there is no usable class
	reuse         bool                    // one volume serves all blocks
	size          int64                   // bytes that runs may use of the reused volume; 0 until known
	reusedClaimed bool                    // the claim of the reused volume may exist
	created       bool                    // any claim may exist
	filling       int64                   // volumes in use at the same time whose files may be on the same disk
}

// SetFilling sets how many volumes are in use at the same time whose files may be on the same disk of a node.
func (st *Storage) SetFilling(n int) { st.filling = int64(n) }

// NewStorage returns the storage for the volumes that spec asks for. It sends no request yet.
func NewStorage(api kubernetes.Interface, spec manifest.Volume, need cluster.RightsScope) *Storage {
	return &Storage{api: api, spec: spec, need: need, reuse: spec.Use == manifest.Reuse}
}

// LookUp finds the storage class. Once it has an answer from the cluster, later calls return the same result. The error
// Is result.ErrNotSupported if the cluster has no usable class, or if rights are missing.
func (st *Storage) LookUp(ctx context.Context) error {
	if st.lookedUp || st.spec.Root() {
		return st.err
	}
	unseen, err := cluster.MissingRules(ctx, st.api, "", cluster.ReadVolumes)
	if err != nil {
		return err
	}
	if len(unseen) > 0 {
		missing, err := cluster.MissingVolumeRights(ctx, st.api, st.need.Namespace)
		if err != nil {
			return err
		}
		st.lookedUp, st.err = true, result.NotSupported(cluster.MissingRightsText(missing)+
			"; without those on persistentvolumes a claim could be bound to a volume with data, which would be overwritten")
		return st.err
	}
	found, err := st.api.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) { // the claim's events will report a missing class
		st.lookedUp = true
		return nil
	}
	if err != nil {
		return diagnosis.Explain(err, "")
	}
	st.lookedUp = true
	st.err = st.chooseClass(found.Items)
	return st.err
}

// Forget makes the next LookUp read the classes again.
func (st *Storage) Forget() { st.lookedUp, st.class, st.err = false, nil, nil }

// chooseClass sets the class that the options name, or the default class. It returns an error if it cannot be used.
func (st *Storage) chooseClass(classes []storagev1.StorageClass) error {
	class, err := findClass(classes, st.spec)
	if err != nil {
		return result.NotSupported(err.Error())
	}
	st.class = class
	st.reuse = st.reuse || st.spec.Use == manifest.ByClass && retains(class)
	switch {
	case class.Provisioner == noProvisioner:
		return result.NotSupported(fmt.Sprintf("the class %s has no provisioner: its volumes were made by hand, and "+
			"Knotmeter overwrites no volume that it did not make; name another class with %s", class.Name,
			st.spec.ClassOption()))
	case st.spec.Vault && retains(class):
		return result.NotSupported(fmt.Sprintf("the class %s retains volumes, so that each block would leave those of its "+
			"Vault; name another class with %s", class.Name, st.spec.ClassOption()))
	}
	return nil
}

// className returns the class that claims name; "" if the default class is unknown because classes cannot be read.
func (st *Storage) className() string {
	if st.class != nil {
		return st.class.Name
	}
	return st.spec.Class
}

// Plan returns the volume of a site, which Provision creates, and sets Reuse of the site's blueprint.
func (st *Storage) Plan(ctx context.Context, plan *manifest.Blueprint) (*Volume, error) {
	if st.spec.Root() {
		return &Volume{blueprint: *plan, spec: st.spec, filling: st.filling}, nil
	}
	if err := st.LookUp(ctx); err != nil { // the class decides whether a volume is reused
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
	st.reusedClaimed = st.reusedClaimed || st.reuse
	v.blueprint, v.reused, v.written, v.filling = *plan, st.reuse, st.size > 0, st.filling
	return v, nil
}

// PlanClaims returns the volumes of n claims, which Provision creates. claim returns the i-th claim, counted from 0, of
// the named class; waits reports whether the class creates volumes only for a chosen node.
func (st *Storage) PlanClaims(
	ctx context.Context, n int, claim func(i int, class string, waits bool) *corev1.PersistentVolumeClaim,
) ([]*Volume, error) {
	if err := st.LookUp(ctx); err != nil {
		return nil, err
	}
	if !st.reusedClaimed {
		if err := st.checkNoneAvailable(ctx); err != nil {
			return nil, err
		}
	}
	st.created = true
	spec := st.spec
	spec.Class = st.className()
	var list []*Volume
	for i := range n {
		request := claim(i, spec.Class, waitsForNode(st.class))
		list = append(list, &Volume{api: st.api, request: request, class: st.class, spec: spec})
	}
	return list, nil
}

// checkNoneAvailable returns an error if Kubernetes could bind a claim to an existing volume.
func (st *Storage) checkNoneAvailable(ctx context.Context) error {
	var names []string
	err := eachVolume(ctx, st.api, func(v *corev1.PersistentVolume) {
		if couldBind(st.spec, v, st.className()) {
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
		"another %s", class, inspection.List(names), st.spec.ClassOption()))
}

// MayHaveClaims reports whether any claim may have been created.
func (st *Storage) MayHaveClaims() bool { return st != nil && st.created }

// HostVolume returns the volume as runs of a block use it.
func (st *Storage) HostVolume(v *Volume) host.Volume {
	offer := host.Volume{Path: v.spec.Path(), Device: v.observed.Device, Size: v.usable(), Kept: v.identity()}
	if v.reused {
		// All blocks use the size of the first: files of earlier blocks take free space.
		if st.size == 0 {
			st.size = offer.Size
		}
		offer.Size = st.size
	}
	return offer
}

// RemoveReused deletes the claim of the volume that served all blocks of an experiment, and waits until the claim and
// the volume are gone.
func (st *Storage) RemoveReused(ctx context.Context, namespace, experiment string) error {
	if st == nil || !st.reusedClaimed || namespace == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, removalTimeout)
	defer cancel()
	plan := manifest.Blueprint{Experiment: experiment, Reuse: true}
	return deleteClaimAndWait(ctx, st.api, namespace, plan.ClaimName())
}

// Facts returns the facts about the storage class of the volumes; none if no option about volumes is given.
func (st *Storage) Facts(ctx context.Context, sets []appsv1.DaemonSet) []result.Fact {
	w := st.spec
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
