// Package manifest builds the objects that are sent to the API server: the pods, Services and namespaces of runs, with
// the names and labels by which they are found again. Its functions are pure.
package manifest

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ShellNeeds lists what an image needs for injection of the agent.
const ShellNeeds = "a shell (sh), and cat and chmod, or tar"

// Labels of the objects that Knotmeter creates. All of them have LabelManaged, which identifies leftovers.
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

// ManagedSelector returns the label selector of all objects that Knotmeter creates.
func ManagedSelector() string { return labels.Set{LabelManaged: ManagedBy}.String() }

// ExperimentSelector returns the label selector of all objects of an experiment.
func ExperimentSelector(experiment string) string {
	return labels.Set{LabelExperiment: experiment}.String()
}

// A Role is the role of a pod in its group.
type Role string

// Roles of the pods of a group.
const (
	Client Role = "client"
	Server Role = "server"
)

// Pods that send requests to the API server use their own service account, whose rights are those of the cases. No
// other pod has a token.

// Paths of the token and of the API server's CA certificate in a pod that sends requests to it.
const (
	TokenVolume = "api-access"
	tokenDir    = "/var/run/secrets/knotmeter.dev"
	TokenFile   = tokenDir + "/token"
	CAFile      = tokenDir + "/ca.crt"
	// tokenTime is the lifetime of a token in seconds; the kubelet renews it earlier.
	tokenTime = 3600
	// rootCA is the ConfigMap with the certificate that Kubernetes creates in every namespace.
	rootCA = "kube-root-ca.crt"
)

// Paths of an injected agent: on a volume in memory, since the container's root directory is read-only and disks of
// nodes may be mounted noexec.
const (
	injectVolume = "agent"
	injectDir    = "/knotmeter"
	InjectPath   = injectDir + "/knotmeter-agent"
	InjectSize   = "128Mi" // limit; the volume takes no more than the size of the program
)

const (
	noRegistry = "knotmeter.local/" // prefix of images that are in no registry
	// DefaultImage is the name that `knotmeter image build` gives the agent's image.
	DefaultImage = noRegistry + "agent:1"
)

// ExperimentName returns the name of an experiment's namespace and Lease, and the prefix of its other names.
func ExperimentName(experiment string) string { return ManagedBy + "-" + experiment }

// ExperimentLabels returns the labels of objects that are created for a whole experiment.
func ExperimentLabels(experiment string) map[string]string {
	return map[string]string{LabelManaged: ManagedBy, LabelExperiment: experiment}
}

// CheckName returns an error unless text is a valid name of a Kubernetes object (a DNS subdomain of RFC 1123).
func CheckName(text string) error {
	if wrong := validation.IsDNS1123Subdomain(text); len(wrong) > 0 {
		return fmt.Errorf("no name in Kubernetes: %s", wrong[0])
	}
	return nil
}

// CheckDefaultAttachment returns an error unless text is NAMESPACE/NAME. Without a namespace, Multus would look for the
// name in its own namespace.
func CheckDefaultAttachment(text string) error {
	if strings.Count(text, "/") != 1 {
		return errors.New("it is NAMESPACE/NAME of a NetworkAttachmentDefinition")
	}
	return CheckAttachment(text)
}

// CheckAttachment returns an error unless text is NAME or NAMESPACE/NAME.
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
