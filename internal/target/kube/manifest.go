package kube

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
)

// user is who runs in the pods: nobody in particular, and not root.
const user = 65532

// lifetime ends pods that nobody removed, in seconds.
const lifetime = 6 * 60 * 60

// A blueprint is what a site is made from.
type blueprint struct {
	options    options
	namespace  string
	experiment string // random, of this target in this process
	site       int    // counted in the experiment
	path       target.Path
	nodes      [2]string               // client's, server's
	archs      [2]string               // of these nodes; empty if unknown
	account    string                  // whose token the client has; empty: none
	owners     []metav1.OwnerReference // with which the pods go
	reuse      bool                    // the volume is that of all runs
}

func (b blueprint) labels(r manifest.Role) map[string]string {
	l := map[string]string{
		manifest.LabelManaged: manifest.ManagedBy, manifest.LabelName: manifest.AgentName, manifest.LabelExperiment: b.experiment, manifest.LabelSite: strconv.Itoa(b.site),
	}
	if r != "" {
		l[manifest.LabelRole] = string(r)
	}
	return l
}

// selector finds what belongs to the site.
func (b blueprint) selector() string {
	return labels.Set{manifest.LabelExperiment: b.experiment, manifest.LabelSite: strconv.Itoa(b.site)}.String()
}

func (b blueprint) name(r manifest.Role) string {
	return fmt.Sprintf("knotmeter-%s-%d-%s", b.experiment, b.site, r)
}

// alone says that there is no server: the client asks somebody who is there already.
func (b blueprint) alone() bool { return !b.path.Network() }

// roles are the ends that there are.
func (b blueprint) roles() []manifest.Role {
	if b.alone() {
		return []manifest.Role{manifest.Client}
	}
	return []manifest.Role{manifest.Client, manifest.Server}
}

// inPod says whether an end has a pod's network, not its node's.
func (b blueprint) inPod(r manifest.Role) bool {
	if r == manifest.Client {
		return b.path.ClientPod() || b.alone()
	}
	return b.path.ServerPod()
}

func (b blueprint) node(r manifest.Role) string {
	if r == manifest.Client {
		return b.nodes[0]
	}
	return b.nodes[1]
}

// hostName is the name of the host: its node, and what it is there.
func (b blueprint) hostName(r manifest.Role) string {
	switch {
	case !b.inPod(r):
		return b.node(r)
	case b.inPod(manifest.Client) && b.inPod(manifest.Server):
		return b.node(r) + "/" + string(r)
	}
	return b.node(r) + "/pod"
}

// namespace is one of our own, for one experiment. Its level of Pod Security is the strictest that the
// pods allow.
func namespace(name, experiment string, hostNetwork bool) *corev1.Namespace {
	level := "restricted"
	if hostNetwork {
		level = "privileged"
	}
	return &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			manifest.LabelManaged: manifest.ManagedBy, manifest.LabelExperiment: experiment, "pod-security.kubernetes.io/enforce": level,
		}},
	}
}

// podSpec is what all pods of ours have: what the restricted Pod Security Standard asks for, an end, and what the user
// says of pods.
func (o options) podSpec(c corev1.Container) corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		ActiveDeadlineSeconds:         new(int64(lifetime)),
		TerminationGracePeriodSeconds: new(int64(1)),
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		Tolerations:                   o.Pods.Tolerations,
		ImagePullSecrets:              o.Pods.ImagePullSecrets,
		SecurityContext:               o.podSecurity(),
		Containers:                    []corev1.Container{c},
	}
}

// podSecurity is who pods run as: nobody in particular, or whom the cluster assigns.
func (o options) podSecurity() *corev1.PodSecurityContext {
	s := &corev1.PodSecurityContext{
		RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if !o.assigned {
		s.RunAsUser, s.RunAsGroup = new(int64(user)), new(int64(user))
	}
	return s
}

// ownFiles gives file systems to the pod's group, which is the cluster's to choose where it assigns users.
func (o options) ownFiles(s *corev1.PodSecurityContext) {
	if !o.assigned {
		s.FSGroup = new(int64(user))
	}
}

// pod is one end. It satisfies the restricted Pod Security Standard, but for the network of its node
// where the path wants that.
func (b blueprint) pod(r manifest.Role) *corev1.Pod {
	o := b.options
	l, annotations := o.marks(b.labels(r))
	if o.Network != "" && b.inPod(r) {
		annotations[inspection.MultusRequest] = o.Network
	}
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: b.name(r), Namespace: b.namespace, Labels: l, Annotations: annotations, OwnerReferences: b.owners,
		},
		Spec: o.podSpec(b.container(r)),
	}
	p.Spec.Affinity, p.Spec.HostNetwork, p.Spec.DNSPolicy = onNode(b.node(r)), !b.inPod(r), b.dnsPolicy()
	p.Spec.Volumes = b.volumes()
	if b.account != "" && r == manifest.Client {
		p.Spec.ServiceAccountName = b.account
	}
	if o.RuntimeClass != "" {
		p.Spec.RuntimeClassName = new(o.RuntimeClass)
	}
	b.mount(p)
	return p
}

// dnsPolicy is the node's own, so that the cluster's DNS is in nobody's way, but where applications are asked, which may be
// Services.
func (b blueprint) dnsPolicy() corev1.DNSPolicy {
	if b.path == target.App {
		return corev1.DNSClusterFirst
	}
	return corev1.DNSDefault
}

// volumes are a place for files, which other tools than our own want, and one for the agent if the image has none.
// The latter is in memory, which counts as the container's.
func (b blueprint) volumes() []corev1.Volume {
	v := []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	if b.options.Inject {
		memory := &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: new(resource.MustParse(injectSize))}
		v = append(v, corev1.Volume{Name: injectVolume, VolumeSource: corev1.VolumeSource{EmptyDir: memory}})
	}
	if b.account != "" {
		v = append(v, tokenVolumeOf())
	}
	return v
}

// agentPath is where the agent's program is in the containers.
func (b blueprint) agentPath() string {
	if b.options.Inject {
		return injectPath
	}
	return remote.AgentPath
}

// container waits; all work comes by exec.
func (b blueprint) container(manifest.Role) corev1.Container {
	c := corev1.Container{
		Name: manifest.ContainerName, Image: b.options.Image, ImagePullPolicy: pullPolicy(b.options.Image),
		Command:   []string{remote.AgentPath, remote.WaitCommand},
		Resources: b.options.Pods.Resources,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
	}
	if b.options.Inject {
		c.Command, c.Stdin = []string{"sh", "-c", waitScript, injectPath}, true
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: injectVolume, MountPath: injectDir})
	}
	if b.account != "" {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: tokenVolume, MountPath: tokenDir, ReadOnly: true})
	}
	return c
}

// pullPolicy never looks in a registry for the image that has no registry in its name: it is on the node or not.
func pullPolicy(image string) corev1.PullPolicy {
	if image == DefaultImage {
		return corev1.PullNever
	}
	return corev1.PullIfNotPresent
}

// onNode lets the scheduler choose one node only, so that what is in the way has a reason.
func onNode(name string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
		}}},
	}}}
}

// service has the site's server as its only endpoint, with the run's one port for both protocols.
func (b blueprint) service() *corev1.Service {
	port := func(protocol corev1.Protocol, name string) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Protocol: protocol, Port: int32(b.options.Port), TargetPort: intstr.FromInt32(int32(b.options.Port))}
	}
	s := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: b.name("svc"), Namespace: b.namespace, Labels: b.labels("")},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP,
			Selector: map[string]string{
				manifest.LabelExperiment: b.experiment, manifest.LabelSite: strconv.Itoa(b.site), manifest.LabelRole: string(manifest.Server),
			},
			Ports: []corev1.ServicePort{port(corev1.ProtocolTCP, "tcp"), port(corev1.ProtocolUDP, "udp")},
		},
	}
	if b.options.Family != "" {
		s.Spec.IPFamilies = []corev1.IPFamily{b.options.Family}
	}
	return s
}
