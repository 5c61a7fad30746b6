package kube

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/site"
)

// A part of a site is what some of its places share: a group of pods, with a Vault if one is deployed for it; or this
// machine.
type part struct {
	plan     manifest.Blueprint
	err      error // why the part does not exist
	group    *site.Group
	vault    *site.Vault // nil unless one is deployed
	vaultErr error       // why the Vault does not work
	local    *site.Local
}

// openPart opens the part of a single placement and returns it.
func (k *claimed) openPart(ctx context.Context, of targets.Placement) (*part, error) {
	if err := k.checkPlacement(of); err != nil {
		return nil, err
	}
	parts, err := k.openParts(ctx, []targets.Placement{of})
	if err != nil {
		return nil, err
	}
	for _, err := range parts[0].errorFields() {
		if *err != nil {
			k.noteUnsupported(parts[0], *err)
			return nil, errors.Join(*err, k.removeAfterError(ctx, parts))
		}
	}
	return parts[0], nil
}

// errorFields returns pointers to all error fields of a part and its paths.
func (p *part) errorFields() []*error {
	list := []*error{&p.err, &p.vaultErr}
	if p.group != nil {
		for _, w := range p.group.Ways {
			list = append(list, &w.Err)
		}
	}
	return list
}

// lostNamespace reports whether the namespace of a part was removed.
func (p *part) lostNamespace() bool {
	return slices.ContainsFunc(p.errorFields(), func(err *error) bool { return diagnosis.NamespaceGone(*err) })
}

// podCount returns the number of pods that ran.
func (p *part) podCount() int {
	n := 0
	if p.group != nil {
		n += len(p.group.Pods)
	}
	if p.vault != nil {
		n += len(p.vault.Pods)
	}
	return n
}

// remove removes parts at the same time, and notes whether something may be left.
func (k *claimed) remove(ctx context.Context, parts []*part) error {
	errs := make([]error, len(parts))
	var all sync.WaitGroup
	for i, p := range parts {
		all.Go(func() { errs[i] = p.remove(ctx) })
	}
	all.Wait()
	err := errors.Join(errs...)
	k.leftovers = k.leftovers || err != nil
	return err
}

// removeAfterError removes parts after a failure, even if ctx has ended.
func (k *claimed) removeAfterError(ctx context.Context, parts []*part) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), site.CleanupTime)
	defer cancel()
	return k.remove(ctx, parts)
}

// remove removes a part. A part with an error needs no removal: it removed its objects when it failed.
func (p *part) remove(ctx context.Context) error {
	switch {
	case p.err != nil:
		return nil
	case p.local != nil:
		p.local.Remove()
		return nil
	case p.vault != nil:
		return errors.Join(p.group.Remove(ctx), p.vault.Remove(ctx))
	}
	return p.group.Remove(ctx)
}
