package manifest

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/counter"
	"github.com/knotmeter/knotmeter/internal/host/remote"
)

// tokenVolumeOf has the token of the pod's account, bound to the pod, and the certificate.
func tokenVolumeOf() corev1.Volume {
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

// waitScript is the first process of a container until the agent is there, which then takes its place. Its standard
// input is one that nobody ever writes to, so that it waits with what a shell has itself. $0 is the agent's path.
const waitScript = `trap 'exec "$0" wait' USR1; trap 'exit 0' TERM; read _; exit 1`

// tmpVolume is the pod's volume for temporary files.
const tmpVolume = "tmp"

// user is who runs in the pods: nobody in particular, and not root.
const user = 65532

// Lifetime ends pods that nobody removed, in seconds.
const Lifetime = 6 * 60 * 60

// PodSpec is what all pods of ours have: what the restricted Pod Security Standard asks for, an end, and what the user
// says of pods.
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

// PodSecurity is who pods run as: nobody in particular, or whom the cluster assigns.
func (o Settings) PodSecurity() *corev1.PodSecurityContext {
	s := &corev1.PodSecurityContext{
		RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if !o.AssignsUsers {
		s.RunAsUser, s.RunAsGroup = new(int64(user)), new(int64(user))
	}
	return s
}

// PodFields are what pods that runs make have of it, as the fields of their spec.
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

// SetFSGroup gives file systems to the pod's group, which is the cluster's to choose where it assigns users.
func (o Settings) SetFSGroup(s *corev1.PodSecurityContext) {
	if !o.AssignsUsers {
		s.FSGroup = new(int64(user))
	}
}

// Pod is one end. It satisfies the restricted Pod Security Standard, but for the network of its node where the paths
// want that, and for what profile=yes asks for: to sample a node's CPUs and to enter its network takes a root with all
// capabilities, and to find that network its processes.
func (b Blueprint) Pod(r Role) *corev1.Pod {
	o := b.Settings
	l, annotations := o.PodMetadata(b.Labels(r))
	switch {
	case !b.InPod(r): // webhooks reserve devices of SR-IOV for whoever asks
		delete(annotations, multusDefaultRequest)
	case o.Network != "":
		annotations[multusRequest] = o.Network
	}
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: b.Name(r), Namespace: b.Namespace, Labels: l, Annotations: annotations, OwnerReferences: b.Owners,
		},
		Spec: o.PodSpec(b.Container()),
	}
	p.Spec.Affinity, p.Spec.HostNetwork, p.Spec.DNSPolicy = onNode(b.Node(r)), !b.InPod(r), b.dnsPolicy()
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

// dnsPolicy is the node's own, so that the cluster's DNS is in nobody's way, but for a client that asks applications,
// which may be Services.
func (b Blueprint) dnsPolicy() corev1.DNSPolicy {
	if b.ClientOnly() && !b.HasVolume() && !b.AsksAPI() {
		return corev1.DNSClusterFirst
	}
	return corev1.DNSDefault
}

// Volumes are a place for files, which other tools than our own want, and one for the agent if the image has none.
// The latter is in memory, which counts as the container's.
func (b Blueprint) Volumes() []corev1.Volume {
	v := []corev1.Volume{EmptyDir(tmpVolume)}
	if b.Settings.Inject {
		memory := &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory,
			SizeLimit: new(resource.MustParse(InjectSize))}
		v = append(v, corev1.Volume{Name: injectVolume, VolumeSource: corev1.VolumeSource{EmptyDir: memory}})
	}
	if b.Account != "" {
		v = append(v, tokenVolumeOf())
	}
	return v
}

// Container waits; all work comes by exec.
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

// RestrictedSecurity is what the restricted Pod Security Standard asks of a container, and a root that is only read.
func RestrictedSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// EmptyDir is a volume that is there as long as its pod.
func EmptyDir(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

// PullPolicy never looks in a registry for an image whose name has none: it is on the node or not.
func PullPolicy(image string) corev1.PullPolicy {
	if strings.HasPrefix(image, noRegistry) {
		return corev1.PullNever
	}
	return corev1.PullIfNotPresent
}

// onNode lets the scheduler choose one node only, so that what is in the way has a reason.
func onNode(name string) *corev1.Affinity {
	only := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
	}}
	terms := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{only}}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
}
