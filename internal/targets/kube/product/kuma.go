package product

// kuma is documented at kuma.io, Kubernetes annotations and labels.
func kuma() Product {
	const inject = "kuma.io/sidecar-injection"
	return Product{
		Name: "kuma",
		Enrolments: []Enrolment{
			{Key: inject, Values: []string{"enabled", "true"}, Mode: Sidecar, OnNamespace: true, AsLabel: true},
		},
		OptOutLabels:      map[string]string{inject: "disabled"},
		OptOutAnnotations: map[string]string{inject: "disabled"}, // of older versions
		Sidecar:           "kuma-sidecar",
	}
}
