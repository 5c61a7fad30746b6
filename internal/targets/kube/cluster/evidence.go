package cluster

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/product"
)

// Gather reads the objects from which facts are derived. What the user may not read stays unknown.
func Gather(ctx context.Context, api kubernetes.Interface) product.Evidence {
	e := product.Evidence{Config: map[string]map[string]string{}, Custom: map[string][]json.RawMessage{}}
	var running version.Info
	if getJSON(ctx, api, "/version", &running) == nil { // Discovery takes no context
		e.Version = running.GitVersion
	}
	if sets, err := api.AppsV1().DaemonSets(corev1.NamespaceAll).List(ctx, metav1.ListOptions{}); err == nil {
		e.DaemonSets = sets.Items
	}
	for _, path := range product.ConfigMaps() {
		namespace, name, _ := strings.Cut(path, "/")
		if m, err := api.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{}); err == nil {
			e.Config[path] = m.Data
		}
	}
	plugins, _ := e.Plugins()
	for _, p := range product.All() {
		runs := slices.ContainsFunc(append(p.PartOf, p.Name), func(n string) bool { return slices.Contains(plugins, n) })
		if len(plugins) == 0 || runs {
			gatherCustom(ctx, api, p, e.Custom)
		}
	}
	return e
}

// gatherCustom adds the custom resources of a product to custom, from its first API group that has any. What the
// cluster lacks, or the user may not read, stays unknown.
func gatherCustom(
	ctx context.Context, api kubernetes.Interface, p product.Product, custom map[string][]json.RawMessage,
) {
	for _, r := range p.Resources {
		for _, group := range r.Groups {
			path := "/apis/" + group + "/" + r.Plural
			var list struct{ Items []json.RawMessage }
			if r.Name == "" {
				_ = getJSON(ctx, api, path, &list)
			} else if text, err := get(ctx, api, path+"/"+r.Name); err == nil {
				list.Items = []json.RawMessage{text}
			}
			if len(list.Items) > 0 {
				custom[r.Plural] = list.Items
				break
			}
		}
	}
}

// Chain returns the plugins of the NetworkAttachmentDefinition NAMESPACE/NAME, in their order. It is empty if the
// definition is absent, may not be read, or leaves its configuration to the nodes.
func Chain(ctx context.Context, api kubernetes.Interface, network string) []string {
	namespace, name, _ := strings.Cut(network, "/")
	var definition struct{ Spec struct{ Config string } }
	if getJSON(ctx, api, "/apis/"+product.AttachmentsGroup+"/v1/namespaces/"+namespace+"/"+product.Attachments+"/"+name,
		&definition) != nil {
		return nil
	}
	return product.Chain(definition.Spec.Config)
}

// get returns the API server's response to a GET of path.
func get(ctx context.Context, api kubernetes.Interface, path string) ([]byte, error) {
	return api.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(ctx)
}

// getJSON decodes the API server's response to a GET of path.
func getJSON(ctx context.Context, api kubernetes.Interface, path string, into any) error {
	text, err := get(ctx, api, path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// PolicyFacts returns facts about the policies that apply to a namespace: Kubernetes' own, and those of products.
func PolicyFacts(ctx context.Context, api kubernetes.Interface, namespace string) []result.Fact {
	facts := []result.Fact{{Name: "network-policies",
		Value: policies(ctx, api, "/apis/networking.k8s.io/v1/namespaces/"+namespace+"/networkpolicies")}}
	for _, p := range product.All() {
		var paths []string
		for _, r := range p.Policies {
			path := "/apis/" + r.Groups[0] + "/"
			if r.Namespaced {
				path += "namespaces/" + namespace + "/"
			}
			paths = append(paths, path+r.Plural)
		}
		if len(paths) > 0 {
			facts = append(facts, result.Fact{Name: p.Name + "-network-policies", Value: policies(ctx, api, paths...)})
		}
	}
	return facts
}

// policies returns the number and names of the objects in some collections, or result.Unknown if one cannot be read. A
// collection that does not exist counts as empty.
func policies(ctx context.Context, api kubernetes.Interface, collections ...string) string {
	var names []string
	for _, path := range collections {
		var found metav1.PartialObjectMetadataList
		if err := getJSON(ctx, api, path, &found); err != nil && !apierrors.IsNotFound(err) {
			return result.Unknown
		}
		for _, p := range found.Items {
			names = append(names, p.Name)
		}
	}
	return inspection.Counted(names)
}

// AssignsUsers reports whether the cluster itself assigns users and groups to pods, as OpenShift's security context
// constraints do. It is false if the API groups may not be read.
func AssignsUsers(ctx context.Context, api kubernetes.Interface) bool {
	return slices.ContainsFunc(product.All(), func(p product.Product) bool {
		if p.UserAssigningGroup == "" {
			return false
		}
		_, err := get(ctx, api, "/apis/"+p.UserAssigningGroup)
		return err == nil
	})
}
