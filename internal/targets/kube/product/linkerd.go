package product

// linkerd is documented at linkerd.io, features/proxy-injection.
func linkerd() Product {
	const inject = "linkerd.io/inject"
	return Product{
		Name: "linkerd",
		Enrolments: []Enrolment{
			{Key: inject, Values: []string{"enabled", "ingress"}, Mode: Sidecar, AsAnnotation: true},
		},
		OptOutAnnotations: map[string]string{inject: "disabled"},
		Sidecar:           "linkerd-proxy",
		InboundPort:       4143,
	}
}
