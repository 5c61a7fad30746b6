package product

// Keys of labels and annotations by which pods join Istio, as istio.io/docs has them: ambient/usage/add-workloads,
// setup/additional-setup/sidecar-injection.
const (
	istioInject = "sidecar.istio.io/inject"
	istioMode   = "istio.io/dataplane-mode"
)

// istio is the mesh with its sidecars and its ambient mode.
func istio() Product {
	return Product{
		Name: "istio",
		Enrolments: []Enrolment{
			{Key: istioMode, Values: []string{"ambient"}, Mode: Ambient, OnNamespace: true, AsLabel: true},
			{Key: istioInject, Values: []string{"true"}, Mode: Sidecar, AsLabel: true, AsAnnotation: true},
			{Key: "istio-injection", Values: []string{"enabled"}, Mode: Sidecar, OnNamespace: true, OptOut: istioInject},
			{Key: "istio.io/rev", Mode: Sidecar, OnNamespace: true, AsLabel: true, OptOut: istioInject},
		},
		OptOutLabels:      map[string]string{istioInject: "false", istioMode: "none"},
		OptOutAnnotations: map[string]string{istioInject: "false"}, // of older versions
		Sidecar:           "istio-proxy",
		InboundPort:       PlaintextPort,
		Redirection:       "ambient.istio.io/redirection", Redirector: "Istio's ambient mesh", ZtunnelMode: Ambient,
	}
}
