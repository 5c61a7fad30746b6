// Package product holds what is known of the products that make up a cluster: CNI plugins, service meshes, storage
// drivers, distributions and cloud providers. Each has a file with one or more Products; All lists them. From the
// objects of a cluster (Evidence) they derive properties as values with their sources; facts.go makes the text of facts
// from these. The functions are pure.
package product

import "slices"

// A Product is what is known of one product. All fields but Name may be empty.
type Product struct {
	Name string // in facts

	// Images identify a CNI plugin by the containers of its daemon set: parts of the last element of an image's name, or
	// of the whole name if they contain a slash.
	Images       []string
	PartOf       []string // names of the plugins that contain this one, with its resources
	OnlyAttaches bool     // it only attaches pods to the networks of other plugins
	// Carries: next to this plugin, others that could carry packets only enforce policies.
	Carries     bool
	ConfigMaps  []string         // with its settings, as NAMESPACE/NAME
	Resources   []CustomResource // custom resources with its settings
	Policies    []CustomResource // its own kinds of network policies
	Annotations string           // group of the annotations that it writes to nodes
	Devices     []DeviceSign     // that it creates on nodes
	// Traces returns the source that shows the plugin without its daemon set; empty if there is none.
	Traces func(Evidence) string
	// Settings returns the settings that change measurements, as KEY=VALUE.
	Settings func(Evidence) []string
	// Encapsulation and Encryption return the tunnel and the encryption of pods' packets between nodes; several if
	// nodes differ; none if the product shows nothing.
	Encapsulation, Encryption func(Evidence) []Property
	// Services returns what of the product replaces kube-proxy: a mechanism such as eBPF, or Replaces.
	Services func(Evidence) []Property
	// BalancesPods reports whether it balances the connections of pods next to a kube-proxy, too.
	BalancesPods func(Evidence) bool

	Enrolments        []Enrolment
	OptOutLabels      map[string]string // of pods that take no part in the mesh
	OptOutAnnotations map[string]string
	Sidecar           string              // name of the container of its proxy
	InboundPort       uint16              // at which its proxy in a pod takes connections in plain text
	Redirection       string              // annotation of pods whose traffic it redirects
	Redirector        string              // what redirects it, for readers
	ZtunnelOn         func(Evidence) bool // reports whether its configuration turns a ztunnel on
	ZtunnelMode       MeshMode

	Provisioners []string // of its volumes
	// Limit returns the documented limit of a volume by the parameters of its class and its size in bytes; known is false
	// if there are no figures.
	Limit func(provisioner string, parameters Parameters, size int64) (l VolumeLimit, known bool)

	VersionMark        string // part of the versions of a distribution's API server
	NodeMark           string // label or annotation of a distribution's nodes
	ProviderMark       string // scheme of the provider ID of its nodes
	OSMark             string // part of the name of its nodes' operating system
	UserAssigningGroup string // API group of a distribution that assigns users to pods
	ConfidentialLabels []string
	Machines           []MachineSize
}

// All returns all products. Where several answer a question with sources of the same strength, the first one counts.
func All() []Product {
	return slices.Concat([]Product{
		cilium(), googleDataplane(), canal(), flannel(), calico(), antrea(), amazonVPC(), azureCNI(), kindnet(),
		kubeRouter(), ovnKubernetes(), kubeOVN(), weave(), multus(), spiderpool(), kubeProxy(), openVSwitch(),
		istio(), linkerd(), consul(), kuma(), openServiceMesh(), appMesh(),
		googleCloud(), awsDistro(), aws(), azure(), constellation(),
	}, otherDistributions)
}

// A CustomResource is a kind of custom resources.
type CustomResource struct {
	Groups     []string // GROUP/VERSION; the first that has objects counts
	Plural     string
	Name       string // of the only object that is read; empty: all
	Namespaced bool
}

// A DeviceSign is a network device of nodes, by the prefix of its name, with what it shows; nothing: only its owner.
type DeviceSign struct {
	Prefix                              string
	Encapsulation, Encryption, Services string
	NeedsAddress                        bool // counts only with an address
}

// A Property is a property's value with its source.
type Property struct {
	Value    string // such as vxlan, or result.Unknown
	Source   string // what shows it, such as a config map
	Strength Strength
	Nodes    bool // encryption: of traffic between nodes, too
}

// Strength is how much a source counts against others: a lower one wins.
type Strength int

// The strengths.
const (
	Configured Strength = iota // settings of the product
	Annotated                  // what it wrote to the nodes
	Designed                   // it has nothing else
	Seen                       // devices of a node
	Assumed                    // nothing else that is known would do it
)

// Values of properties besides names of protocols and result.None.
const (
	Replaces = "replaces" // kube-proxy
	// crossSubnet is the suffix of tunnels that packets within a subnet do not take.
	crossSubnet = "-cross-subnet"
	// maybeCrossSubnet is that of Calico's tunnels whose mode is unknown, because the pools that hold it cannot be read.
	maybeCrossSubnet = "-maybe-cross-subnet"
)

// one returns a single property of strength Configured.
func one(value, source string) []Property { return []Property{{Value: value, Source: source}} }

// A MachineSize holds the documented limits of a size of virtual machine. The machine sustains no more, whatever its
// disks and its peers could do.
type MachineSize struct {
	Name   string
	Link   float64 // Mbit/s of the network
	IOPS   float64 // operations a second of all disks together, without a cache of the host
	Disks  float64 // MB/s of all disks together
	Series *SizeSeries
}

// A SizeSeries is a group of machine sizes that one page documents.
type SizeSeries struct {
	Link  string // source of the network rate
	Disks string // source of the disk limits
	Note  string // caveat of the disk limits; may be empty
}

// ConfigMaps returns the config maps with settings of all products, as NAMESPACE/NAME.
func ConfigMaps() (names []string) {
	for _, p := range All() {
		for _, name := range p.ConfigMaps {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
