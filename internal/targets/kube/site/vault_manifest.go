package site

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/vault"
)

const vaultRole manifest.Role = "vault"

const (
	vaultName   = "vault" // host name in its certificate
	vaultPort   = 8200
	vaultPeers  = 8201 // port between replicas
	vaultConfig = "/vault/config"
	vaultData   = "/vault/data"
	// labelVault is the label with the number of the group that a Vault was deployed for. The pods of the Vault do not
	// have the group's own label, because they would then belong to the group.
	labelVault = "knotmeter.dev/vault"
)

// A VaultPlan holds what determines a Vault: the group that sends requests to it, and the user's options.
type VaultPlan struct {
	manifest.Blueprint
	Wanted      vault.Instance
	VolumeNodes []string // nodes for volumes that wait for a pod
}

// VaultVolume returns the settings of each replica's volume.
func VaultVolume(wanted vault.Instance, size resource.Quantity) manifest.Volume {
	return manifest.Volume{Given: wanted.StorageClass != "", Class: wanted.StorageClass, Access: corev1.ReadWriteOnce,
		Size: size, Use: manifest.Fresh, Vault: true}
}

func (b VaultPlan) vaultLabels() map[string]string {
	return map[string]string{manifest.LabelManaged: manifest.ManagedBy, manifest.LabelName: vaultName,
		manifest.LabelExperiment: b.Experiment, labelVault: strconv.Itoa(b.Site), manifest.LabelRole: string(vaultRole)}
}

// vaultSelector returns the label selector of the group's Vault.
func (b VaultPlan) vaultSelector() string {
	return labels.Set{manifest.LabelExperiment: b.Experiment, labelVault: strconv.Itoa(b.Site)}.String()
}

func (b VaultPlan) vaultPodName(i int) string { return fmt.Sprintf("%s-%d", b.Name(vaultRole), i) }

func (b VaultPlan) claimName(i int) string { return b.vaultPodName(i) + "-volume" }

// Claim returns the claim of replica i, counted from 0. waits reports whether the class creates volumes only for a
// chosen node. If so, the blocks begin at each node in turn, so that the first replica, which becomes the first leader,
// is not always on the same node.
func (b VaultPlan) Claim(i int, class string, waits bool) *corev1.PersistentVolumeClaim {
	node := ""
	if waits {
		node = b.VolumeNodes[(b.Site+i)%len(b.VolumeNodes)]
	}
	o := metav1.ObjectMeta{Name: b.claimName(i), Namespace: b.Namespace, Labels: b.vaultLabels()}
	return VaultVolume(b.Wanted, b.Settings.Volume.Size).Claim(o, class, node)
}

// vaultHCL returns the configuration of all replicas: Raft storage, TLS for clients, and no locked memory, which would
// need a privilege. What differs between replicas is in their environment variables.
func (b VaultPlan) vaultHCL() string {
	wildcard := "0.0.0.0"
	if b.Settings.Family == corev1.IPv6Protocol {
		wildcard = "[::]"
	}
	return fmt.Sprintf(`ui = false
disable_mlock = true
storage "raft" {
  path = %q
}
listener "tcp" {
  address         = "%s:%d"
  cluster_address = "%s:%d"
  tls_cert_file   = "%s/tls.crt"
  tls_key_file    = "%s/tls.key"
}
`, vaultData, wildcard, vaultPort, wildcard, vaultPeers, vaultConfig, vaultConfig)
}

// ConfigSecret returns the Secret with the configuration and the TLS key. The client's pod owns it, so it is removed
// with the pod however this program ends, and no right to list Secrets is needed.
func (b VaultPlan) ConfigSecret(cert, key []byte, owner types.UID) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: b.Name(vaultRole), Namespace: b.Namespace, Labels: b.vaultLabels(),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Pod", Name: b.Name(manifest.Client), UID: owner,
			}}},
		Data: map[string][]byte{"vault.hcl": []byte(b.vaultHCL()), "tls.crt": cert, "tls.key": key},
	}
}

// Replica returns the pod of replica i, which satisfies the restricted Pod Security Standard. Replicas prefer separate
// nodes, other than the client's.
func (b VaultPlan) Replica(i int) *corev1.Pod {
	o := b.Settings
	l, annotations := o.PodMetadata(b.vaultLabels())
	spread := corev1.TopologySpreadConstraint{
		MaxSkew: 1, TopologyKey: "kubernetes.io/hostname", WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{manifest.LabelExperiment: b.Experiment,
			labelVault: strconv.Itoa(b.Site)}},
	}
	p := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: b.vaultPodName(i), Namespace: b.Namespace, Labels: l, Annotations: annotations},
		Spec:       o.PodSpec(b.vaultContainer()),
	}
	p.Spec.Affinity = preferOtherNodes(b.Nodes[0])
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{spread}
	o.SetFSGroup(p.Spec.SecurityContext)
	p.Spec.Volumes = []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: b.Name(vaultRole),
			DefaultMode: new(int32(0o440))}}},
		b.data(i), manifest.EmptyDir("tmp"),
	}
	if o.RuntimeClass != "" {
		p.Spec.RuntimeClassName = new(o.RuntimeClass)
	}
	return p
}

// data returns the volume of a replica's data: its claim, or a directory on the node's disk.
func (b VaultPlan) data(i int) corev1.Volume {
	if b.Wanted.StorageClass == "" {
		return manifest.EmptyDir("data")
	}
	return corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: b.claimName(i)},
	}}
}

func (b VaultPlan) vaultContainer() corev1.Container {
	address := "$(POD_IP)"
	if b.Settings.Family == corev1.IPv6Protocol {
		address = "[$(POD_IP)]"
	}
	image := b.Wanted.Image
	return corev1.Container{
		Name: manifest.ContainerName, Image: image, ImagePullPolicy: manifest.PullPolicy(image),
		Command: []string{"vault", "server", "-config=" + vaultConfig + "/vault.hcl"},
		Env: []corev1.EnvVar{
			{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
			{Name: "POD_NAME",
				ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
			{Name: "VAULT_API_ADDR", Value: fmt.Sprintf("https://%s:%d", address, vaultPort)},
			{Name: "VAULT_CLUSTER_ADDR", Value: fmt.Sprintf("https://%s:%d", address, vaultPeers)},
			{Name: "VAULT_RAFT_NODE_ID", Value: "$(POD_NAME)"},
			{Name: "HOME", Value: "/tmp"},
		},
		Resources: b.resources(),
		// The leader and standbys are ready, sealed replicas are not.
		ReadinessProbe: &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: "/v1/sys/health?standbyok=true&perfstandbyok=true", Port: intstr.FromInt32(vaultPort),
				Scheme: corev1.URISchemeHTTPS,
			}},
			PeriodSeconds: 5, TimeoutSeconds: 3,
		},
		SecurityContext: manifest.RestrictedSecurity(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: "config", MountPath: vaultConfig, ReadOnly: true}, {Name: "data", MountPath: vaultData},
			{Name: "tmp", MountPath: "/tmp"},
		},
	}
}

// resources returns the user's values as requests and limits; by default small requests and only a memory limit.
func (b VaultPlan) resources() corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"),
			corev1.ResourceMemory: resource.MustParse("256Mi")},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")},
	}
	given := map[corev1.ResourceName]string{corev1.ResourceCPU: b.Wanted.CPU, corev1.ResourceMemory: b.Wanted.Memory}
	for name, text := range given {
		if text != "" {
			r.Requests[name], r.Limits[name] = resource.MustParse(text), resource.MustParse(text)
		}
	}
	return r
}

// preferOtherNodes returns an affinity that prefers all nodes other than node.
func preferOtherNodes(node string) *corev1.Affinity {
	others := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{node}},
	}}
	terms := []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: others}}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: terms}}
}

// certificate returns a new self-signed certificate for vaultName and its key, both as PEM. The certificate is valid
// from an hour before now until manifest.Lifetime after now.
func certificate(now time.Time) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	about := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: vaultName}, DNSNames: []string{vaultName},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(manifest.Lifetime * time.Second),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}), err
}
