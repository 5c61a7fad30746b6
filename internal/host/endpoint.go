package host

// An Endpoint is an HTTP service as a host reaches it: an API server or an application.
type Endpoint struct {
	URL       string   `json:"url,omitempty"`       // https://10.96.0.1:443
	Addresses []string `json:"addresses,omitempty"` // host:port of each replica, connected to in turn; empty: the URL's
	CA        []byte   `json:"ca,omitempty"`        // CA certificates in PEM; empty: those of the host
	CAFile    string   `json:"ca_file,omitempty"`   // the same, in a file on the host
	Leader    bool     `json:"leader,omitempty"`    // send requests only to the leader of several replicas
	InPod     bool     `json:"in_pod,omitempty"`    // the host is a pod; its environment has the API server's address
	Namespace string   `json:"namespace,omitempty"` // namespace in which a run may create objects
	Image     string   `json:"image,omitempty"`     // image of the pods that a run creates
	// PullPolicy of that image: Always, IfNotPresent, Never, or empty for the API server's default.
	PullPolicy string `json:"pull_policy,omitempty"`
	// Node is the node of the pods that a run creates; empty: any.
	Node string `json:"node,omitempty"`
	// Labels are added to every object that a run creates; Pod holds fields for the spec of its pods.
	Labels map[string]string `json:"labels,omitempty"`
	Pod    map[string]any    `json:"pod,omitempty"`
	// PodLabels and PodAnnotations are added to pods and their controllers; they keep service meshes from adding sidecars.
	PodLabels      map[string]string `json:"pod_labels,omitempty"`
	PodAnnotations map[string]string `json:"pod_annotations,omitempty"`
	// Lacks holds the reasons why requests are impossible, by the name of a resource or "metrics".
	Lacks map[string]string `json:"lacks,omitempty"`
	// Names holds the names, by UID, of objects that a server identifies by UID only.
	Names  map[string]string `json:"names,omitempty"`
	HTTP   int               `json:"http,omitempty"` // 1: HTTP/1.1 even if the server offers HTTP/2
	Secret Secret            `json:"secret,omitzero"`
}

// A Secret holds a client's credentials. It is passed to agents on standard input only.
type Secret struct {
	Token     string `json:"token,omitempty"`
	TokenFile string `json:"token_file,omitempty"` // file on the host, read at the start of each run
	Cert      []byte `json:"cert,omitempty"`       // PEM
	Key       []byte `json:"key,omitempty"`        // PEM
	// Header holds header fields for each request, instead of a token.
	Header map[string][]string `json:"header,omitempty"`
}

// String hides the secret from everything that prints an endpoint.
func (Secret) String() string { return "(secret)" }

// GoString hides the secret from %#v.
func (Secret) GoString() string { return "(secret)" }

// Redacted returns the endpoint without its secret, so that it may be stored.
func (e Endpoint) Redacted() Endpoint {
	e.Secret = Secret{}
	return e
}
