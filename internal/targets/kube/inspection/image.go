package inspection

import (
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// A Image is what the container runtime of a node says that it runs.
type Image struct {
	node, arch string
	Digest     string // empty if it does not say
}

// ImageOf is what a pod's status says of its image.
func ImageOf(p *corev1.Pod, arch string) Image {
	r := Image{node: p.Spec.NodeName, arch: arch}
	if s := OwnStatus(p); s != nil {
		if _, digest, ok := strings.Cut(s.ImageID, "sha256:"); ok {
			r.Digest = "sha256:" + digest
		} else {
			r.Digest = s.ImageID
		}
	}
	return r
}

// A Pin is the image of an experiment: what ran first on each architecture is what has to run until its end. It is safe
// for concurrent use.
type Pin struct {
	mu    sync.Mutex
	first map[string]Image // by architecture
}

// Check says that a pod has another image than those before it. Nodes of different architectures have images of
// different digests, which says nothing.
func (p *Pin) Check(image string, r Image) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	first, seen := p.first[r.arch]
	switch {
	case r.Digest == "":
		return nil
	case !seen:
		if p.first == nil {
			p.first = map[string]Image{}
		}
		p.first[r.arch] = r
		return nil
	case first.Digest == r.Digest:
		return nil
	case first.node == r.node:
		return fmt.Errorf("the image %s has changed during the experiment: node %s ran %s, and now runs %s; %s", image,
			r.node, first.Digest, r.Digest, pinRemedy(image))
	}
	return fmt.Errorf("the image %s is not the same everywhere: node %s runs %s, node %s runs %s; %s", image, first.node,
		first.Digest, r.node, r.Digest, pinRemedy(image))
}

func pinRemedy(image string) string {
	if strings.Contains(image, "@") {
		return "the runtimes do not keep to the digest: bring the same image to all nodes"
	}
	return "name it by its digest, image=REFERENCE@sha256:…, or bring the same image to all nodes"
}
