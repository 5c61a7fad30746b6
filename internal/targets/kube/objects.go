package kube

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
)

// labelRun is the additional label of objects that runs create.
const labelRun = "knotmeter.dev/run"

// Collections of objects that are removed, as API paths.
var (
	namespaceKind = []string{"/api/v1/namespaces"}
	// runCollections are the kinds that runs on the API server create, and that show the effect of changes.
	runCollections = []string{"/apis/apps/v1/deployments", "/api/v1/configmaps", policies}
	siteKinds      = []string{"/api/v1/services", "/api/v1/pods"} // created by sites, and by runs on the API server
	// clusterKinds are the kinds that grant cluster-wide rights.
	clusterKinds = []string{rbac + "clusterrolebindings", rbac + "clusterroles"}
	accountKinds = []string{rbac + "rolebindings", rbac + "roles", "/api/v1/serviceaccounts", "/apis/batch/v1/jobs"}
	volumeKind   = []string{"/api/v1/persistentvolumeclaims"}
	leaseKind    = []string{"/apis/coordination.k8s.io/v1/leases"}
)

const policies = "/apis/networking.k8s.io/v1/networkpolicies"

const rbac = "/apis/rbac.authorization.k8s.io/v1/"

// A listedObject is an object of the API server with our label.
type listedObject struct {
	collection string // API path
	metav1.ObjectMeta
}

func (t listedObject) String() string {
	return strings.TrimSuffix(path.Base(t.collection), "s") + " " + strings.TrimPrefix(t.Namespace+"/"+t.Name, "/")
}

// collectionPath returns the path of a collection in a namespace; "" is all namespaces.
func collectionPath(collection, namespace string) string {
	if namespace == "" {
		return collection
	}
	group, plural := path.Split(collection)
	return group + "namespaces/" + namespace + "/" + plural
}

// listObjects returns the objects of a collection that a selector finds; namespace "" is all namespaces.
func listObjects(
	ctx context.Context, api kubernetes.Interface, collection, namespace, selector string,
) ([]listedObject, error) {
	if collection == namespaceKind[0] || strings.Contains(collection, "/clusterrole") {
		namespace = ""
	}
	text, err := api.CoreV1().RESTClient().Get().AbsPath(collectionPath(collection, namespace)).
		Param("labelSelector", selector).DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	var found metav1.PartialObjectMetadataList
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, err
	}
	var list []listedObject
	for _, o := range found.Items {
		list = append(list, listedObject{collection, o.ObjectMeta})
	}
	return list, nil
}

// removeObjects removes the objects that a selector finds in some collections and that takes accepts, and returns their
// names; namespace "" is all namespaces. A collection that may not be listed counts as empty, since the user could not
// have created objects in it.
func removeObjects(
	ctx context.Context, api kubernetes.Interface, namespace, selector string, collections []string,
	takes func(listedObject) bool,
) (removed []string, _ error) {
	var errs []error
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(1)),
		PropagationPolicy: new(metav1.DeletePropagationBackground)}
	for _, collection := range collections {
		found, err := listObjects(ctx, api, collection, namespace, selector)
		if err != nil && !apierrors.IsForbidden(err) {
			errs = append(errs, diagnosis.Explain(err, namespace))
		}
		for _, t := range found {
			if !takes(t) {
				continue
			}
			from := collectionPath(collection, t.Namespace)
			err := api.CoreV1().RESTClient().Delete().AbsPath(from, t.Name).Body(&now).Do(ctx).Error()
			if err = diagnosis.IgnoreNotFound(err); err != nil && !apierrors.IsConflict(err) {
				errs = append(errs, diagnosis.Explain(err, t.Namespace))
				continue
			}
			removed = append(removed, t.String())
		}
	}
	return removed, errors.Join(errs...)
}

// anyObject accepts every object.
func anyObject(listedObject) bool { return true }
