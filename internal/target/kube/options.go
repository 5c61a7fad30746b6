package kube

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/userfile"
	"github.com/knotmeter/knotmeter/internal/vault"
)

// DefaultImage is what `knotmeter image build` calls the agent's image.
const DefaultImage = "knotmeter.local/agent:1"

// defaultPort is the one port of a run.
const defaultPort = 5201

// Options of a kube target: what stands after the name, each with an example and what it says.
func Options() [][2]string {
	list := [][2]string{
		{"namespace=NAME", "an existing namespace to use, instead of one that is made and removed"},
		{"image=REF", "the agent's image, best with its digest (default " + DefaultImage + ")"},
		{"inject=no", "yes: put the agent into pods of any image= that has a shell, instead of an image that has it"},
		{"client-node=NAME", "the client's node, instead of one that is chosen"},
		{"server-node=NAME", "the server's node on paths between nodes"},
		{"node-selector=k=v,…", "only nodes with these labels (%3D for = within the value)"},
		{"zones=same", "nodes in the same zone, or across"},
		{"rotate-nodes=no", "yes: another pair of nodes in each block, every node as often as the others"},
		{"host-network=yes", "no: no pods in the nodes' own network, and no node paths"},
		{"runtime-class=NAME", "of the pods"},
		{"network=NAME", "a Multus attachment that the pods' traffic takes"},
		{"ip=4", "the IP version of the traffic: 4 or 6 (default: the cluster's first)"},
		{"vantage=pod", "where the API server is asked from: a pod of ours, or here, which is this machine with the kubeconfig's credentials"},
		{"port=" + strconv.Itoa(defaultPort), "the one port of a run"},
		{"storage-class=NAME", "of the volumes that storage is measured on (default: the cluster's default class)"},
		{"access-mode=ReadWriteOnce", "of the volumes: ReadWriteOnce, ReadWriteOncePod or ReadWriteMany"},
		{"volume-mode=filesystem", "of the volumes, or block for the device itself"},
		{"size=" + defaultVolume, "of the volumes"},
		{"volume=fresh", "a new volume for each run, or reuse: one for all of them (default: fresh, but reuse where the class retains volumes)"},
		{"config=FILE", "tolerations, imagePullSecrets, resources, annotations and labels of the pods, as YAML; or the text itself, in braces"},
		{"kubeconfig=FILE", "instead of $KUBECONFIG or ~/.kube/config"},
		{"context=NAME", "of the kubeconfig, where the target's name is empty"},
		{"cluster=NAME", "of the kubeconfig, instead of the context's"},
		{"user=NAME", "of the kubeconfig, instead of the context's"},
		{"as=NAME", "the user to impersonate"},
		{"as-group=NAME,…", "the groups to impersonate"},
		{"as-uid=UID", "the UID to impersonate"},
		{"server=URL", "of the API server"},
		{"tls-server-name=NAME", "that the API server's certificate is for, where it is not the one in its URL"},
		{"certificate-authority=FILE", "that the API server's certificate is by"},
		{"insecure-skip-tls-verify=no", "yes: the API server's certificate is not checked"},
		{"client-certificate=FILE", "for TLS"},
		{"client-key=FILE", "for TLS"},
		{"disable-compression=no", "yes: the API server is not to compress its answers"},
		{"request-timeout=0", "of a single request to the API server, such as 30s; 0 is none"},
	}
	return append(append(list, vault.Options(true)...), [2]string{"label=NAME", "the target's name in all output"})
}

// An options is the text of a target, read.
type options struct {
	connection
	Namespace      string // "": one of our own
	Image          string
	Inject         bool   // the image has no agent
	Client, Server string // nodes; "": chosen
	Selector       labels.Selector
	Across, Rotate bool
	HostNetwork    bool
	RuntimeClass   string
	Network        string // Multus attachment
	Family         corev1.IPFamily
	Port           int
	Here           bool // the API server is asked from this machine
	Pods           podSettings
	Vault          vault.Place
	Volume         wanted // that storage is measured on
	assigned       bool   // users and groups of pods are: the cluster has security context constraints
}

// podSettings is what config= names: what clusters want of pods.
type podSettings struct {
	Tolerations      []corev1.Toleration           `json:"tolerations,omitempty"`
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	Resources        corev1.ResourceRequirements   `json:"resources,omitempty"`
	Annotations      map[string]string             `json:"annotations,omitempty"`
	Labels           map[string]string             `json:"labels,omitempty"`
}

// defaultResources ask for little and limit no CPU: a limit would be measured.
func defaultResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
	}
}

// parse reads the options of a target. Every error Is target.ErrSpec and names the option.
func parse(spec target.Spec) (options, error) {
	o := options{
		connection: connection{context: spec.Name}, Image: DefaultImage, Selector: labels.Everything(), HostNetwork: true, Port: defaultPort, Volume: anyVolume(),
		Pods: podSettings{Resources: defaultResources()},
	}
	if err := noSecrets(spec); err != nil {
		return o, err
	}
	var known []string
	for _, line := range Options() {
		name, _, _ := strings.Cut(line[0], "=")
		if name != "label" {
			known = append(known, name)
		}
	}
	if err := spec.Only(known...); err != nil {
		return o, err
	}
	for _, name := range known {
		text, ok := spec.Options[name]
		if !ok {
			continue
		}
		if err := o.set(name, text); err != nil {
			return o, fmt.Errorf("%w: %s: option %s=%s: %w", target.ErrSpec, spec.Label(), name, text, err)
		}
	}
	if o.Inject && spec.Options["image"] == "" {
		return o, fmt.Errorf("%w: %s: inject=yes needs image=, one of your own that has %s: the default image has the agent already", target.ErrSpec, spec.Label(), manifest.ShellNeeds)
	}
	if o.Client != "" && o.Client == o.Server {
		return o, fmt.Errorf("%w: %s: client-node and server-node are the same node; paths on one node are measured on the client's", target.ErrSpec, spec.Text)
	}
	if err := o.consistent(); err != nil {
		return o, fmt.Errorf("%w: %s: %w", target.ErrSpec, spec.Label(), err)
	}
	if err := o.Vault.Check(); err != nil {
		return o, fmt.Errorf("%w: %s: %w", target.ErrSpec, spec.Label(), err)
	}
	if o.Server != "" && o.Client == "" {
		return o, fmt.Errorf("%w: %s: server-node= needs client-node= too", target.ErrSpec, spec.Text)
	}
	return o, nil
}

func (o *options) set(name, text string) (err error) {
	if name == "vault" || strings.HasPrefix(name, "vault-") {
		return o.Vault.Set(name, text)
	}
	switch name {
	case "namespace":
		o.Namespace, err = text, dnsName(text)
	case "image":
		o.Image, err = text, imageName(text)
	case "inject":
		o.Inject, err = choice(text, "no", "yes")
	case "client-node":
		o.Client, err = text, dnsName(text)
	case "server-node":
		o.Server, err = text, dnsName(text)
	case "node-selector":
		o.Selector, err = labels.Parse(text)
	case "runtime-class":
		o.RuntimeClass, err = text, dnsName(text)
	case "network":
		o.Network, err = text, attachment(text)
	case "zones":
		o.Across, err = choice(text, "same", "across")
	case "rotate-nodes":
		o.Rotate, err = choice(text, "no", "yes")
	case "host-network":
		o.HostNetwork, err = choice(text, "no", "yes")
	case "ip":
		var six bool
		six, err = choice(text, "4", "6")
		o.Family = corev1.IPv4Protocol
		if six {
			o.Family = corev1.IPv6Protocol
		}
	case "vantage":
		o.Here, err = choice(text, "pod", "here")
	case "port":
		o.Port, err = strconv.Atoi(text)
		if err != nil || o.Port < 1024 || o.Port > 65535 {
			err = fmt.Errorf("it is a port from 1024 to 65535: pods without privileges have no lower ones")
		}
	case "config":
		err = o.Pods.read(text)
	default:
		if is, err := o.Volume.set(name, text); is {
			return err
		}
		err = o.connection.set(name, text)
	}
	return err
}

// choice reads the second of two words as true.
func choice(text, no, yes string) (bool, error) {
	if text != no && text != yes {
		return false, fmt.Errorf("it is %s or %s", no, yes)
	}
	return text == yes, nil
}

func dnsName(text string) error {
	if wrong := validation.IsDNS1123Subdomain(text); len(wrong) > 0 {
		return fmt.Errorf("no name in Kubernetes: %s", wrong[0])
	}
	return nil
}

// attachment is name or namespace/name.
func attachment(text string) error {
	parts := strings.Split(text, "/")
	if len(parts) > 2 {
		return fmt.Errorf("it is NAME or NAMESPACE/NAME of a NetworkAttachmentDefinition")
	}
	for _, part := range parts {
		if err := dnsName(part); err != nil {
			return err
		}
	}
	return nil
}

// imageName refuses what no container runtime would take; the runtime knows the rest.
func imageName(text string) error {
	if !regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._:/@-]*$`).MatchString(text) {
		return fmt.Errorf("it is no image, such as registry.example/knotmeter-agent@sha256:…")
	}
	return nil
}

// read reads the file that config= names, or what it holds itself in braces. What is given replaces the default as a whole.
func (p *podSettings) read(file string) error {
	if strings.HasPrefix(file, "{") {
		return p.unmarshal([]byte(file))
	}
	text, err := userfile.Read(file, userfile.Limit)
	if err != nil {
		return err
	}
	return p.unmarshal(text)
}

func (p *podSettings) unmarshal(text []byte) error {
	given := podSettings{}
	if err := userfile.Decode(text, &given); err != nil {
		return inField(text, err)
	}
	for _, key := range reserved() {
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

// CheckPods says what is wrong with a text that config= would take.
func CheckPods(text []byte) error { return new(podSettings).unmarshal(text) }

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
		if wrong, is := errors.AsType[*userfile.Error](userfile.Decode(alone, &podSettings{})); is && !strings.HasPrefix(wrong.Text, name+":") {
			wrong.Text, wrong.Line = name+": "+wrong.Text, 0
			if whole, is := errors.AsType[*userfile.Error](err); is && bytes.ContainsRune(text, '\n') {
				wrong.Line = whole.Line // where a line tells something
			}
			return wrong
		}
	}
	return err
}

func reserved() []string {
	return []string{manifest.LabelManaged, manifest.LabelName, manifest.LabelExperiment, manifest.LabelSite, manifest.LabelRole}
}
