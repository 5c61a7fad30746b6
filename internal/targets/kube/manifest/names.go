// Package manifest says what is sent to the API server, as pure functions: the pods, Services and namespaces of runs,
// and the names and labels by which they are found again.
package manifest

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ShellNeeds is what an image needs so that the agent can be put into it.
const ShellNeeds = "a shell (sh), and cat and chmod, or tar"

// The labels of everything that is made. By the first, leftovers are found.
const (
	LabelManaged    = "app.kubernetes.io/managed-by"
	LabelName       = "app.kubernetes.io/name"
	LabelExperiment = "knotmeter.dev/experiment"
	LabelSite       = "knotmeter.dev/site"
	LabelRole       = "knotmeter.dev/role"

	ManagedBy     = "knotmeter"
	AgentName     = "knotmeter-agent"
	ContainerName = "agent"
)

// ManagedSelector selects everything of ours.
func ManagedSelector() string { return labels.Set{LabelManaged: ManagedBy}.String() }

// ExperimentSelector selects everything of an experiment.
func ExperimentSelector(experiment string) string {
	return labels.Set{LabelExperiment: experiment}.String()
}

// A Role is one end of a site.
type Role string

const (
	Client Role = "client"
	Server Role = "server"
)

// The annotations by which Multus is asked for a further network, and for one in place of the default network.
const (
	multusRequest        = "k8s.v1.cni.cncf.io/networks"
	multusDefaultRequest = "v1.multus-cni.io/default-network"
)

// Pods that ask the API server do it as a service account of their own, which may do what the cases do and nothing
// else. No other pod of ours has a token.

// Where the token and the certificate of the API server's authority are in a pod that asks it.
const (
	TokenVolume = "api-access"
	tokenDir    = "/var/run/secrets/knotmeter.dev"
	TokenFile   = tokenDir + "/token"
	CAFile      = tokenDir + "/ca.crt"
	// tokenTime is how long a token is good for; the kubelet renews it before that.
	tokenTime = 3600 // seconds
	// rootCA is the ConfigMap that every namespace has with the certificate.
	rootCA = "kube-root-ca.crt"
)

// Where the agent is in a container that it was put into: on a volume in memory, since the container's root
// cannot be written to and disks of nodes may not allow programs.
const (
	injectVolume = "agent"
	injectDir    = "/knotmeter"
	InjectPath   = injectDir + "/knotmeter-agent"
	InjectSize   = "128Mi" // at most; it takes what the program has
)

const (
	noRegistry = "knotmeter.local/" // of names of images that are in none
	// DefaultImage is what `knotmeter image build` calls the agent's image.
	DefaultImage = noRegistry + "agent:1"
)

// ExperimentName is that of an experiment's own namespace and of its Lease; what else is made for it begins so.
func ExperimentName(experiment string) string { return ManagedBy + "-" + experiment }

// ExperimentLabels are those of what is made for a whole experiment.
func ExperimentLabels(experiment string) map[string]string {
	return map[string]string{LabelManaged: ManagedBy, LabelExperiment: experiment}
}

// CheckName refuses what is no name in Kubernetes.
func CheckName(text string) error {
	if wrong := validation.IsDNS1123Subdomain(text); len(wrong) > 0 {
		return fmt.Errorf("no name in Kubernetes: %s", wrong[0])
	}
	return nil
}

// CheckDefaultAttachment refuses what is not NAMESPACE/NAME: Multus takes a name alone for one in its own namespace.
func CheckDefaultAttachment(text string) error {
	if strings.Count(text, "/") != 1 {
		return errors.New("it is NAMESPACE/NAME of a NetworkAttachmentDefinition")
	}
	return CheckAttachment(text)
}

// CheckAttachment refuses what is neither NAME nor NAMESPACE/NAME.
func CheckAttachment(text string) error {
	parts := strings.Split(text, "/")
	if len(parts) > 2 {
		return fmt.Errorf("it is NAME or NAMESPACE/NAME of a NetworkAttachmentDefinition")
	}
	for _, part := range parts {
		if err := CheckName(part); err != nil {
			return err
		}
	}
	return nil
}
