package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/knotmeter/knotmeter/internal/userfile"
)

// Settings are what users say of the pods and Services of runs.
type Settings struct {
	Image          string
	Inject         bool // the image has no agent
	RuntimeClass   string
	Network        string // Multus attachment next to the default network, or
	DefaultNetwork string // one in its place, as NAMESPACE/NAME
	Family         corev1.IPFamily
	Port           int
	Pods           PodSettings
	Volume         Volume // that storage is measured on
	Profile        bool   // CPUs are sampled and counters read on the nodes
	AssignsUsers   bool   // the cluster has security context constraints, by which it assigns users and groups
}

// PodSettings is what config= names: what clusters want of pods.
type PodSettings struct {
	Tolerations      []corev1.Toleration           `json:"tolerations,omitempty"`
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	Resources        corev1.ResourceRequirements   `json:"resources,omitempty"`
	Annotations      map[string]string             `json:"annotations,omitempty"`
	Labels           map[string]string             `json:"labels,omitempty"`
}

// CPULimit is the limit of CPU time that the user gave pods; empty if there is none.
func (p PodSettings) CPULimit() string {
	if limit := p.Resources.Limits.Cpu(); !limit.IsZero() {
		return limit.String()
	}
	return ""
}

// DefaultResources ask for little and limit no CPU: a limit would be measured.
func DefaultResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"),
			corev1.ResourceMemory: resource.MustParse("128Mi")},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
	}
}

// Read reads the file that config= names, or what it holds itself in braces. What is given replaces the default as a
// whole.
func (p *PodSettings) Read(file string) error {
	if strings.HasPrefix(file, "{") {
		return p.Unmarshal([]byte(file))
	}
	text, err := userfile.Read(file, userfile.Limit)
	if err != nil {
		return err
	}
	return p.Unmarshal(text)
}

func (p *PodSettings) Unmarshal(text []byte) error {
	given := PodSettings{}
	if err := userfile.Decode(text, &given); err != nil {
		return inField(text, err)
	}
	for _, key := range reserved {
		if _, is := given.Labels[key]; is {
			return fmt.Errorf("the label %s is Knotmeter's own", key)
		}
	}
	if len(given.Resources.Requests)+len(given.Resources.Limits)+len(given.Resources.Claims) == 0 {
		given.Resources = p.Resources
	}
	*p = given
	return nil
}

// inField puts the field before an error that does not name it.
func inField(text []byte, err error) error {
	var fields map[string]any
	if yaml.Unmarshal(text, &fields) != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		alone, cannot := yaml.Marshal(map[string]any{name: fields[name]})
		if cannot != nil {
			continue
		}
		if wrong, is := errors.AsType[*userfile.Error](userfile.Decode(alone, &PodSettings{})); is &&
			!strings.HasPrefix(wrong.Text, name+":") {
			wrong.Text, wrong.Line = name+": "+wrong.Text, 0
			if whole, is := errors.AsType[*userfile.Error](err); is && bytes.ContainsRune(text, '\n') {
				wrong.Line = whole.Line // where a line tells something
			}
			return wrong
		}
	}
	return err
}

// reserved are the labels that users cannot give.
var reserved = []string{
	LabelManaged, LabelName, LabelExperiment, LabelSite, LabelRole,
}
