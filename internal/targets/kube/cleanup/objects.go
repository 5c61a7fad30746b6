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

	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
)

// LabelRun is the label that the objects of runs have beside ours.
const LabelRun = "knotmeter.dev/run"

// The collections of what is removed.
var (
	NamespaceKind = []string{"/api/v1/namespaces"}
	// ObjectKinds are what runs on the API server make, and such that see what a change does.
	ObjectKinds = []string{"/apis/apps/v1/deployments", "/api/v1/configmaps", policies}
	SiteKinds   = []string{"/api/v1/services", "/api/v1/pods"} // that sites have, and such runs too
	// ClusterKinds give rights in the whole cluster.
	ClusterKinds = []string{rbac + "clusterrolebindings", rbac + "clusterroles"}
	AccountKinds = []string{rbac + "rolebindings", rbac + "roles", "/api/v1/serviceaccounts", "/apis/batch/v1/jobs"}
	volumeKind   = []string{"/api/v1/persistentvolumeclaims"}
	leaseKind    = []string{"/apis/coordination.k8s.io/v1/leases"}
)

// policies are those of runs that see what they do.
const policies = "/apis/networking.k8s.io/v1/networkpolicies"

const rbac = "/apis/rbac.authorization.k8s.io/v1/"

// A Thing is an object of the API server that has our label.
type Thing struct {
	collection string // that it is in
	metav1.ObjectMeta
}

func (t Thing) String() string {
	return strings.TrimSuffix(path.Base(t.collection), "s") + " " + strings.TrimPrefix(t.Namespace+"/"+t.Name, "/")
}

// at is the path of a collection, in a namespace if there is one.
func at(collection, namespace string) string {
	if namespace == "" {
		return collection
	}
	group, plural := path.Split(collection)
	return group + "namespaces/" + namespace + "/" + plural
}

// List are the things of a collection that a selector finds, in a namespace or in all of them.
func List(ctx context.Context, api kubernetes.Interface, collection, namespace, selector string) ([]Thing, error) {
	if collection == NamespaceKind[0] || strings.Contains(collection, "/clusterrole") {
		namespace = ""
	}
	text, err := api.CoreV1().RESTClient().Get().AbsPath(at(collection, namespace)).
		Param("labelSelector", selector).DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	var found metav1.PartialObjectMetadataList
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, err
	}
	var list []Thing
	for _, o := range found.Items {
		list = append(list, Thing{collection, o.ObjectMeta})
	}
	return list, nil
}

// Remove removes what a selector finds of some collections and takes says, in a namespace or all of them, and returns
// the names of it. What may not be listed could not be made either.
func Remove(
	ctx context.Context, api kubernetes.Interface, namespace, selector string, collections []string,
	takes func(Thing) bool,
) (removed []string, _ error) {
	var errs []error
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(1)),
		PropagationPolicy: new(metav1.DeletePropagationBackground)}
	for _, collection := range collections {
		found, err := List(ctx, api, collection, namespace, selector)
		if err != nil && !apierrors.IsForbidden(err) {
			errs = append(errs, diagnosis.Explain(err, namespace))
		}
		for _, t := range found {
			if !takes(t) {
				continue
			}
			err := api.CoreV1().RESTClient().Delete().AbsPath(at(collection, t.Namespace), t.Name).Body(&now).Do(ctx).Error()
			if err = diagnosis.IgnoreNotFound(err); err != nil && !apierrors.IsConflict(err) {
				errs = append(errs, diagnosis.Explain(err, t.Namespace))
				continue
			}
			removed = append(removed, t.String())
		}
	}
	return removed, errors.Join(errs...)
}

// All takes what a selector finds.
func All(Thing) bool { return true }
