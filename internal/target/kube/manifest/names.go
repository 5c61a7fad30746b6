// Package manifest says what is sent to the API server, as pure functions: the pods, Services and namespaces of runs,
// and the names and labels by which they are found again.
package manifest

import (
	"k8s.io/apimachinery/pkg/labels"
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

// OurSelector selects everything of ours.
func OurSelector() string { return labels.Set{LabelManaged: ManagedBy}.String() }

// A Role is one end of a site.
type Role string

const (
	Client Role = "client"
	Server Role = "server"
)
