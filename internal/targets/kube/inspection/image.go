package inspection

import (
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// A RunningImage is the image of a running container as its node reports it.
type RunningImage struct {
	node, arch string
	Digest     string // empty if the node does not report it
}

// ImageOf returns the image in the status of a pod, whose node has the architecture arch.
func ImageOf(p *corev1.Pod, arch string) RunningImage {
	r := RunningImage{node: p.Spec.NodeName, arch: arch}
	if s := OwnStatus(p); s != nil {
		if _, digest, ok := strings.Cut(s.ImageID, "sha256:"); ok {
			r.Digest = "sha256:" + digest
		} else {
			r.Digest = s.ImageID
		}
	}
	return r
}

// A Pin checks that all pods of an experiment run the same image: the image of the first pod on each architecture must
// run until the end. It is safe for concurrent use.
type Pin struct {
	mu    sync.Mutex
	first map[string]RunningImage // by architecture
}

// Check returns an error if a pod runs another image than the first pod on the same architecture. Digests of different
// architectures always differ. image is the name that the user gave.
func (p *Pin) Check(image string, r RunningImage) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	first, seen := p.first[r.arch]
	switch {
	case r.Digest == "":
		return nil
	case !seen:
		if p.first == nil {
			p.first = map[string]RunningImage{}
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

// pinRemedy returns what the user can do so that all nodes run the same image.
func pinRemedy(image string) string {
	if strings.Contains(image, "@") {
		return "the runtimes do not keep to the digest: bring the same image to all nodes"
	}
	return "name it by its digest, image=REFERENCE@sha256:…, or bring the same image to all nodes"
}
