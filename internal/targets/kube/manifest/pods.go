package manifest

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/counter"
	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/targets/kube/product"
)

// newTokenVolume returns the volume with a token of the pod's account, bound to the pod, and the CA certificate.
func newTokenVolume() corev1.Volume {
	return corev1.Volume{Name: TokenVolume,
		VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token",
				ExpirationSeconds: new(int64(tokenTime))}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: rootCA},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
		}}}}
}

// waitScript waits until the agent is injected, and then replaces itself with it; $0 is the agent's path. It waits by a
// read from standard input, which is never written to, since the image may have no sleep.
const waitScript = `trap 'exec "$0" wait' USR1; trap 'exit 0' TERM; read _; exit 1`

// tmpVolume is the pod's volume for temporary files.
const tmpVolume = "tmp"

// podUser is the ID of the user and group of pods: an arbitrary one, not root.
const podUser = 65532

// Lifetime is the active deadline of pods in seconds, which ends those that were not removed.
const Lifetime = 6 * 60 * 60

// PodSpec returns the common spec of pods with a container: as the restricted Pod Security Standard requires, with a
// deadline, and with the user's settings.
func (o Settings) PodSpec(c corev1.Container) corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		ActiveDeadlineSeconds:         new(int64(Lifetime)),
		TerminationGracePeriodSeconds: new(int64(1)),
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		Tolerations:                   o.Pods.Tolerations,
		ImagePullSecrets:              o.Pods.ImagePullSecrets,
		SecurityContext:               o.PodSecurity(),
		Containers:                    []corev1.Container{c},
	}
}

// PodSecurity returns the security context of pods: podUser, or the user that the cluster assigns.
func (o Settings) PodSecurity() *corev1.PodSecurityContext {
	s := &corev1.PodSecurityContext{
		RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if !o.AssignsUsers {
		s.RunAsUser, s.RunAsGroup = new(int64(podUser)), new(int64(podUser))
	}
	return s
}

// PodFields returns the settings as fields of the spec of pods that runs create themselves.
func (o Settings) PodFields() map[string]any {
	fields := map[string]any{}
	if o.AssignsUsers {
		fields["securityContext"] = o.PodSecurity()
	}
	if len(o.Pods.Tolerations) > 0 {
		fields["tolerations"] = o.Pods.Tolerations
	}
	if len(o.Pods.ImagePullSecrets) > 0 {
		fields["imagePullSecrets"] = o.Pods.ImagePullSecrets
	}
	if o.RuntimeClass != "" {
		fields["runtimeClassName"] = o.RuntimeClass
	}
	return fields
}

// SetFSGroup sets the group that owns the file systems of volumes, unless the cluster assigns it.
func (o Settings) SetFSGroup(s *corev1.PodSecurityContext) {
	if !o.AssignsUsers {
		s.FSGroup = new(int64(podUser))
	}
}

// Pod returns the pod of a role. It satisfies the restricted Pod Security Standard with two exceptions: paths to nodes
// need the host network; profile=yes needs a privileged root user, to sample CPUs and to enter the node's network
// namespace, and the node's PID namespace, to find that network namespace.
func (b Blueprint) Pod(r Role) *corev1.Pod {
	o := b.Settings
	l, annotations := o.PodMetadata(b.Labels(r))
	switch {
	case !b.InPod(r): // else webhooks would reserve SR-IOV devices for the pod
		delete(annotations, product.MultusDefaultRequest)
	case o.Network != "":
		annotations[product.MultusRequest] = o.Network
	}
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: b.Name(r), Namespace: b.Namespace, Labels: l, Annotations: annotations, OwnerReferences: b.Owners,
		},
		Spec: o.PodSpec(b.Container()),
	}
	p.Spec.Affinity, p.Spec.HostNetwork, p.Spec.DNSPolicy = nodeAffinity(b.Node(r)), !b.InPod(r), b.dnsPolicy()
	p.Spec.Volumes = b.Volumes()
	if b.Account != "" && r == Client {
		p.Spec.ServiceAccountName = b.Account
	}
	if o.RuntimeClass != "" {
		p.Spec.RuntimeClassName = new(o.RuntimeClass)
	}
	b.mount(p)
	if b.Profiles() {
		p.Spec.HostPID, p.Spec.SecurityContext = true, &corev1.PodSecurityContext{RunAsUser: new(int64(0))}
	}
	return p
}

// dnsPolicy returns the DNS of the node, so that pods do not depend on the cluster's DNS. Clients of applications use
// the cluster's, because an application may be a Service.
func (b Blueprint) dnsPolicy() corev1.DNSPolicy {
	if b.ClientOnly() && !b.HasVolume() && !b.AsksAPI() {
		return corev1.DNSClusterFirst
	}
	return corev1.DNSDefault
}

// Volumes returns the pod's volumes: for temporary files of external tools, for an injected agent, and for the token.
// The volume of the agent is in memory, which counts towards the container's memory limit.
func (b Blueprint) Volumes() []corev1.Volume {
	v := []corev1.Volume{EmptyDir(tmpVolume)}
	if b.Settings.Inject {
		memory := &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory,
			SizeLimit: new(resource.MustParse(InjectSize))}
		v = append(v, corev1.Volume{Name: injectVolume, VolumeSource: corev1.VolumeSource{EmptyDir: memory}})
	}
	if b.Account != "" {
		v = append(v, newTokenVolume())
	}
	return v
}

// Container returns the agent's container. It only waits; runs start programs in it by exec.
func (b Blueprint) Container() corev1.Container {
	c := corev1.Container{
		Name: ContainerName, Image: b.Settings.Image, ImagePullPolicy: PullPolicy(b.Settings.Image),
		Command:         []string{remote.AgentPath, remote.WaitCommand},
		Resources:       b.Settings.Pods.Resources,
		SecurityContext: RestrictedSecurity(),
		VolumeMounts:    []corev1.VolumeMount{{Name: tmpVolume, MountPath: "/tmp"}},
	}
	if b.Settings.Inject {
		c.Command, c.Stdin = []string{"sh", "-c", waitScript, InjectPath}, true
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: injectVolume, MountPath: injectDir})
	}
	if b.Profiles() {
		c.SecurityContext = &corev1.SecurityContext{Privileged: new(true), ReadOnlyRootFilesystem: new(true)}
		c.Env = []corev1.EnvVar{{Name: counter.Node, Value: counter.Ancestor}}
	}
	if b.Account != "" {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: TokenVolume, MountPath: tokenDir, ReadOnly: true})
	}
	return c
}

// RestrictedSecurity returns the security context that the restricted Pod Security Standard requires of a container,
// with a read-only root directory.
func RestrictedSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// EmptyDir returns an empty volume with the lifetime of its pod.
func EmptyDir(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

// PullPolicy returns the pull policy of an image. It is Never for an image that is in no registry, which must be on the
// node already.
func PullPolicy(image string) corev1.PullPolicy {
	if strings.HasPrefix(image, noRegistry) {
		return corev1.PullNever
	}
	return corev1.PullIfNotPresent
}

// nodeAffinity restricts a pod to one node. Unlike with spec.nodeName, the scheduler reports why the pod does not fit.
func nodeAffinity(name string) *corev1.Affinity {
	only := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
	}}
	terms := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{only}}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
}
