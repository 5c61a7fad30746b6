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
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/userfile"
)

// Settings holds the user's options about pods and Services, and AssignsUsers, a property of the cluster.
type Settings struct {
	Image          string
	Inject         bool // the agent is copied into the container, because the image has none
	RuntimeClass   string
	Network        string          // Multus attachment next to the default network; may be empty
	DefaultNetwork string          // Multus attachment in place of it, as NAMESPACE/NAME; may be empty
	Family         corev1.IPFamily // empty: the first one
	Port           int             // of the server and its Service
	Pods           PodSettings
	Volume         Volume // volume of storage cases
	Profile        bool   // sample CPUs and read counters on the nodes
	AssignsUsers   bool   // the cluster assigns users and groups by security context constraints

	NamespaceLabels           map[string]string // of a namespace that is created
	PodLabels, PodAnnotations map[string]string // in addition to those of Pods
}

// PodSettings is the content of the file that config= names: fields that a cluster may require of pods.
type PodSettings struct {
	Tolerations      []corev1.Toleration           `json:"tolerations,omitempty"`
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	Resources        corev1.ResourceRequirements   `json:"resources,omitempty"`
	Annotations      map[string]string             `json:"annotations,omitempty"`
	Labels           map[string]string             `json:"labels,omitempty"`
}

// CPULimit returns the CPU limit that the user set for pods, as text; empty without one.
func (p PodSettings) CPULimit() string {
	if limit := p.Resources.Limits.Cpu(); !limit.IsZero() {
		return limit.String()
	}
	return ""
}

// DefaultResources returns small requests, and no CPU limit, because it would affect measurements.
func DefaultResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"),
			corev1.ResourceMemory: resource.MustParse("128Mi")},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
	}
}

// Read reads the value of config=: the name of a file, or YAML in braces. It replaces all settings, except resources if
// none are given.
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

// Unmarshal parses YAML settings, which replace all settings as in Read. Labels of Knotmeter's own are an error.
func (p *PodSettings) Unmarshal(text []byte) error {
	given := PodSettings{}
	if err := userfile.Decode(text, &given); err != nil {
		return addField(text, err)
	}
	if err := checkReserved(given.Labels); err != nil {
		return err
	}
	if len(given.Resources.Requests)+len(given.Resources.Limits)+len(given.Resources.Claims) == 0 {
		given.Resources = p.Resources
	}
	*p = given
	return nil
}

// addField prefixes a decoding error with the name of the field that causes it, unless the error has it.
func addField(text []byte, err error) error {
	var fields map[string]any
	if yaml.Unmarshal(text, &fields) != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		field, marshalErr := yaml.Marshal(map[string]any{name: fields[name]})
		if marshalErr != nil {
			continue
		}
		if wrong, is := errors.AsType[*userfile.Error](userfile.Decode(field, &PodSettings{})); is &&
			!strings.HasPrefix(wrong.Text, name+":") {
			wrong.Text, wrong.Line = name+": "+wrong.Text, 0
			if whole, is := errors.AsType[*userfile.Error](err); is && bytes.ContainsRune(text, '\n') {
				wrong.Line = whole.Line // text in one line needs no line number
			}
			return wrong
		}
	}
	return err
}

// reservedLabels lists the labels that users cannot set.
var reservedLabels = []string{
	LabelManaged, LabelName, LabelExperiment, LabelSite, LabelRole, podSecurityEnforce,
}

// checkReserved returns an error if a label is one of Knotmeter's own.
func checkReserved(given map[string]string) error {
	for _, key := range reservedLabels {
		if _, is := given[key]; is {
			return fmt.Errorf("the label %s is Knotmeter's own", key)
		}
	}
	return nil
}

// ParseLabels parses labels, given as KEY=VALUE,…. Labels of Knotmeter's own are an error.
func ParseLabels(text string) (map[string]string, error) {
	given, err := parsePairs(text, validation.IsValidLabelValue)
	if err != nil {
		return nil, err
	}
	return given, checkReserved(given)
}

// ParseAnnotations parses annotations, given as KEY=VALUE,…. A backslash escapes a comma in a value.
func ParseAnnotations(text string) (map[string]string, error) {
	return parsePairs(text, func(string) []string { return nil })
}

// parsePairs parses KEY=VALUE,…; check returns what is wrong with a value.
func parsePairs(text string, check func(value string) []string) (map[string]string, error) {
	pairs := map[string]string{}
	for _, pair := range targets.SplitList(text) {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not KEY=VALUE", pair)
		}
		if _, twice := pairs[key]; twice {
			return nil, fmt.Errorf("the key %s is given twice", key)
		}
		if wrong := slices.Concat(validation.IsQualifiedName(key), check(value)); len(wrong) > 0 {
			return nil, fmt.Errorf("%q is no label or annotation: %s", pair, wrong[0])
		}
		pairs[key] = value
	}
	return pairs, nil
}
