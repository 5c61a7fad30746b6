package kube

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// A running is what the container runtime of a node says that it runs.
type running struct {
	node, arch string
	digest     string // empty if it does not say
}

// imageOf is what a pod's status says of its image.
func imageOf(p *corev1.Pod, arch string) running {
	r := running{node: p.Spec.NodeName, arch: arch}
	if s := ownStatus(p); s != nil {
		if _, digest, ok := strings.Cut(s.ImageID, "sha256:"); ok {
			r.digest = "sha256:" + digest
		} else {
			r.digest = s.ImageID
		}
	}
	return r
}

// A pin is the image of an experiment: what ran first on each architecture is what has to run until its end.
type pin map[string]running

// hold says that a pod has another image than those before it. Nodes of different architectures have images of
// different digests, which says nothing.
func (p pin) hold(image string, r running) error {
	first, seen := p[r.arch]
	switch {
	case r.digest == "":
		return nil
	case !seen:
		p[r.arch] = r
		return nil
	case first.digest == r.digest:
		return nil
	case first.node == r.node:
		return fmt.Errorf("the image %s has changed during the experiment: node %s ran %s, and now runs %s; %s", image, r.node, first.digest, r.digest, pinRemedy(image))
	}
	return fmt.Errorf("the image %s is not the same everywhere: node %s runs %s, node %s runs %s; %s", image, first.node, first.digest, r.node, r.digest, pinRemedy(image))
}

func pinRemedy(image string) string {
	if strings.Contains(image, "@") {
		return "the runtimes do not keep to the digest: bring the same image to all nodes"
	}
	return "name it by its digest, image=REFERENCE@sha256:…, or bring the same image to all nodes"
}
