package cleanup

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/knotmeter/knotmeter/internal/target/kube/diagnosis"
)

// LabelRun is the label that the objects of runs have beside ours.
const LabelRun = "knotmeter.dev/run"

// listed are the objects of a collection that a selector finds.
func ListObjects(
	ctx context.Context, api kubernetes.Interface, collection, namespace, selector string,
) ([]metav1.PartialObjectMetadata, error) {
	where := collection
	if scoped(collection) && namespace != "" {
		where = inNamespace(collection, namespace)
	}
	text, err := api.CoreV1().RESTClient().Get().AbsPath(where).Param("labelSelector", selector).DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	var found metav1.PartialObjectMetadataList
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, err
	}
	return found.Items, nil
}

// inNamespace is a collection's path in one namespace.
func inNamespace(collection, namespace string) string {
	group, plural := path.Split(collection)
	return group + "namespaces/" + namespace + "/" + plural
}

// ObjectKinds are the collections of what runs on the API server make, ownKinds those of what sites have too.
var ObjectKinds = []string{"/apis/apps/v1/deployments", "/api/v1/configmaps"}

var OwnKinds = []string{"/api/v1/services", "/api/v1/pods"}

var NamespaceKind = []string{"/api/v1/namespaces"}

// AccountKinds are the collections of what gives rights.
func AccountKinds() []string {
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	return []string{rbac + "clusterrolebindings", rbac + "clusterroles", rbac + "rolebindings", rbac + "roles",
		"/api/v1/serviceaccounts", "/apis/batch/v1/jobs"}
}

// scoped says whether the objects of a collection are in namespaces.
func scoped(collection string) bool {
	return collection != NamespaceKind[0] && !strings.Contains(collection, "/clusterrole")
}

// RemoveObjects removes what a selector finds of some collections, in a namespace or all of them, and returns the names
// of it. What may not be listed could not be made either.
func RemoveObjects(
	ctx context.Context, api kubernetes.Interface, namespace, selector string, collections []string, takes takes,
) ([]string, error) {
	var removed []string
	var errs []error
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(1)),
		PropagationPolicy: new(metav1.DeletePropagationBackground)}
	for _, collection := range collections {
		found, err := ListObjects(ctx, api, collection, namespace, selector)
		if apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			errs = append(errs, diagnosis.Explain(err, namespace))
			continue
		}
		for _, o := range found {
			if !takes(collection, o.ObjectMeta) {
				continue
			}
			at, name := collection+"/"+o.Name, o.Name
			if scoped(collection) {
				at, name = inNamespace(collection, o.Namespace)+"/"+o.Name, o.Namespace+"/"+o.Name
			}
			err := api.CoreV1().RESTClient().Delete().AbsPath(at).Body(&now).Do(ctx).Error()
			if err = diagnosis.IgnoreGone(err); err != nil && !apierrors.IsConflict(err) {
				errs = append(errs, diagnosis.Explain(err, namespace))
				continue
			}
			removed = append(removed, strings.TrimSuffix(path.Base(collection), "s")+" "+name)
		}
	}
	return removed, errors.Join(errs...)
}
