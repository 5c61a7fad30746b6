package host

// An Endpoint is a service over HTTP as a host reaches it: an API server, or an application.
type Endpoint struct {
	URL       string   `json:"url,omitempty"`       // https://10.96.0.1:443
	Addresses []string `json:"addresses,omitempty"` // host:port of each replica, connected to in turn; empty: the URL's
	CA        []byte   `json:"ca,omitempty"`        // certificates in PEM that vouch for it; empty: the host's own
	CAFile    string   `json:"ca_file,omitempty"`   // the same in a file of the host
	Leader    bool     `json:"leader,omitempty"`    // of several replicas only the one that leads is to be asked
	InPod     bool     `json:"in_pod,omitempty"`    // the host is a pod, whose environment names the API server's address
	Namespace string   `json:"namespace,omitempty"` // where a run may make objects
	Image     string   `json:"image,omitempty"`     // of the pods that a run makes
	// PullPolicy of that image: Always, IfNotPresent, Never, or empty for the API server's default.
	PullPolicy string `json:"pull_policy,omitempty"`
	// Pods that a run makes are to be on this node; empty: anywhere.
	Node string `json:"node,omitempty"`
	// Labels that everything has which a run makes, beside its own; Pod is fields of the spec of the pods that it starts.
	Labels map[string]string `json:"labels,omitempty"`
	Pod    map[string]any    `json:"pod,omitempty"`
	// Labels and annotations of pods alone, and of what makes them: those that keep service meshes out.
	PodLabels      map[string]string `json:"pod_labels,omitempty"`
	PodAnnotations map[string]string `json:"pod_annotations,omitempty"`
	// Lacks says why something cannot be asked, by its name: a resource, or metrics.
	Lacks map[string]string `json:"lacks,omitempty"`
	// Names of what a server tells by UIDs alone.
	Names  map[string]string `json:"names,omitempty"`
	HTTP   int               `json:"http,omitempty"` // 1 for HTTP/1.1 even where 2 is to be had
	Secret Secret            `json:"secret,omitzero"`
}

// A Secret is what lets a client in. It is handed to agents on their standard input and nowhere else.
type Secret struct {
	Token     string `json:"token,omitempty"`
	TokenFile string `json:"token_file,omitempty"` // of the host; read again as it changes
	Cert      []byte `json:"cert,omitempty"`       // PEM
	Key       []byte `json:"key,omitempty"`        // PEM
	// Header fields of each request, instead of a token.
	Header map[string][]string `json:"header,omitempty"`
}

// String keeps the secret out of whatever prints an endpoint.
func (Secret) String() string   { return "(secret)" }
func (Secret) GoString() string { return "(secret)" }

// Open is the endpoint without its secret, to be kept.
func (e Endpoint) Open() Endpoint {
	e.Secret = Secret{}
	return e
}
