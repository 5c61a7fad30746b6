package product

// Meshes of which pods only opt out.

func openServiceMesh() Product {
	return Product{Name: "open-service-mesh",
		OptOutAnnotations: map[string]string{"openservicemesh.io/sidecar-injection": "disabled"}}
}

func appMesh() Product {
	return Product{Name: "app-mesh",
		OptOutAnnotations: map[string]string{"appmesh.k8s.aws/sidecarInjectorWebhook": "disabled"}}
}
