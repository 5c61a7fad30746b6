package product

// consul is documented at developer.hashicorp.com/consul, annotations and labels.
func consul() Product {
	const inject = "consul.hashicorp.com/connect-inject"
	return Product{
		Name:              "consul",
		Enrolments:        []Enrolment{{Key: inject, Values: []string{"true"}, Mode: Sidecar, AsAnnotation: true}},
		OptOutAnnotations: map[string]string{inject: "false"},
		Sidecar:           "consul-dataplane",
	}
}
