package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

func apiPlacement() targets.Placement {
	return targets.Placement{AsksAPI: true}
}

// listAccounts returns our accounts, roles and bindings on the cluster.
func listAccounts(t *testing.T, c *cluster.Cluster) []string {
	t.Helper()
	var names []string
	for _, collection := range slices.Concat(clusterKinds, accountKinds) {
		// also called from t.Cleanup, where t.Context is cancelled
		found, err := listObjects(context.WithoutCancel(t.Context()), c, collection, "", manifest.ManagedSelector())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range found {
			names = append(names, collection+" "+o.Name)
		}
	}
	return names
}

// TestAPIAccount checks that the pod of an API site has a token that is bound to it, and that the account of the token
// may do only what the cases do. Other pods have no token.
func TestAPIAccount(t *testing.T) {
	c := admin(t)
	k := newTestTarget(t, realCluster(t))
	site, err := targets.OpenOne(t.Context(), k, apiPlacement())
	if err != nil {
		t.Fatal(err)
	}
	if site.Endpoint.URL != inClusterURL || site.Endpoint.Namespace != k.claimed.namespace || site.Endpoint.Node == "" ||
		len(site.Endpoint.Lacks) > 0 {
		t.Errorf("%+v", site.Endpoint)
	}
	pods, err := c.CoreV1().Pods(k.claimed.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 1 {
		t.Fatal(len(pods.Items), err)
	}
	p := pods.Items[0]
	if p.Spec.ServiceAccountName != k.claimed.account.Name || !slices.ContainsFunc(p.Spec.Containers[0].VolumeMounts,
		mountsToken) {
		t.Errorf("account %s, mounts %v", p.Spec.ServiceAccountName, p.Spec.Containers[0].VolumeMounts)
	}
	if err := site.Close(t.Context()); err != nil {
		t.Error(err)
	}
	site, err = targets.OpenOne(t.Context(), k, targets.Placement{Path: result.PodPodSame})
	if err != nil {
		t.Fatal(err)
	}
	pods, err = c.CoreV1().Pods(k.claimed.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 2 {
		t.Fatal(len(pods.Items), err)
	}
	for _, p := range pods.Items {
		if p.Spec.ServiceAccountName == k.claimed.account.Name || slices.ContainsFunc(p.Spec.Containers[0].VolumeMounts,
			mountsToken) {
			t.Errorf("a pod that asks nobody has a token: %+v", p.Spec)
		}
	}
	closeAndCheck(t, c, k, site)
}

// closeAndCheck closes a site and its target, and checks that nothing of them is left on the cluster.
func closeAndCheck(t *testing.T, c *cluster.Cluster, k *kubeTarget, site targets.Single) {
	t.Helper()
	if err := site.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if left := append(leftovers(t, c), listAccounts(t, c)...); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestAPIRights checks that the printed rights suffice to measure the API server, and that each rule is needed. In the
// user's namespace no cluster-wide right is granted, whatever rights the user has.
func TestAPIRights(t *testing.T) {
	c := admin(t)
	given := namespaceFor(t, c, "restricted")
	const user = "knotmeter-test-asks"
	text := asUser(t, user) + "&namespace=" + given + "&client-node=node-1&server-node=node-2"
	all := cluster.Roles(parseOptions(t, text).need(allNeeds()))
	measuring, asking := all[0].(rbacv1.Role), all[1].(rbacv1.Role)
	try := func(t *testing.T, rules []rbacv1.PolicyRule, more ...any) (host.Endpoint, error) {
		t.Helper()
		role := measuring
		role.Rules = slices.Concat(measuring.Rules, rules)
		defer grant(t, c, user, append([]any{role}, more...))()
		k := newTestTarget(t, text)
		defer func() {
			if err := k.Close(); err != nil {
				t.Error(err)
			}
		}()
		site, err := targets.OpenOne(t.Context(), k, apiPlacement())
		if err != nil {
			return host.Endpoint{}, err
		}
		return site.Endpoint, site.Close(t.Context())
	}
	e, err := try(t, asking.Rules)
	if err != nil || len(e.Names) > 0 {
		t.Errorf("with the first part alone: %d names, %v", len(e.Names), err)
	}
	more := cluster.Roles(parseOptions(t, asUser(t, user)).need(allNeeds()))
	e, err = try(t, asking.Rules, more...)
	if err != nil || len(e.Names) == 0 || e.Lacks["namespaces"] != cluster.ErrGivenNamespace.Error() ||
		e.Lacks["metrics"] != cluster.ErrGivenNamespace.Error() {
		t.Errorf("with all rights: %v, %d names, %v", e.Lacks, len(e.Names), err)
	}
	for i, left := range asking.Rules {
		name := strings.Join(left.Resources, "-")
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			if _, err := try(t, slices.Concat(asking.Rules[:i], asking.Rules[i+1:])); err == nil ||
				!strings.Contains(err.Error(), "may not") && !strings.Contains(err.Error(), "is not allowed") &&
					!strings.Contains(err.Error(), "refuses") {
				t.Errorf("without %v: %v", left, err)
			}
		})
	}
	if left := append(leftovers(t, c), listAccounts(t, c)...); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestAPIClean checks that clean removes the objects of runs that a killed program left, and no other objects of the
// same kinds.
func TestAPIClean(t *testing.T) {
	c := admin(t)
	text := realCluster(t)
	k := newTestTarget(t, text)
	if _, err := targets.OpenOne(t.Context(), k, apiPlacement()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"knotmeter-x-0", "not-ours"} {
		n := manifest.NewNamespace(name, k.experiment, manifest.LevelRestricted, nil)
		n.Labels[labelRun] = "x"
		if name == "not-ours" {
			n.Labels = nil
		}
		if _, err := c.CoreV1().Namespaces().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		if err := removeNamespace(context.WithoutCancel(t.Context()), c, "not-ours"); err != nil {
			t.Error(err)
		}
	}()
	spec, err := result.ParseSpec(text)
	if err != nil {
		t.Fatal(err)
	}
	removed, err := Clean(t.Context(), spec, nil, cleanAll())
	if err != nil || !slices.Contains(removed, "namespace knotmeter-x-0") ||
		slices.Contains(removed, "namespace not-ours") {
		t.Errorf("%v, %v", removed, err)
	}
	if still := append(leftovers(t, c), listAccounts(t, c)...); len(still) > 0 {
		t.Errorf("left: %v", still)
	}
	if _, err := c.CoreV1().Namespaces().Get(t.Context(), "not-ours", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// TestAPIFromHere checks that vantage=here uses the kubeconfig's credentials, and that a connection without a check of
// the certificate is refused.
func TestAPIFromHere(t *testing.T) {
	admin(t)
	spec, err := result.ParseSpec(realCluster(t) + "&vantage=here")
	if err != nil {
		t.Fatal(err)
	}
	made, err := New(spec, allNeeds(), builtAgent, "knotmeter", "agent")
	if err != nil {
		t.Fatal(err)
	}
	site, err := targets.OpenOne(t.Context(), made, apiPlacement())
	if err != nil {
		t.Fatal(err)
	}
	if e := site.Endpoint; !strings.HasPrefix(e.URL, "https://") || len(e.CA) == 0 || len(e.Secret.Cert) == 0 ||
		fmt.Sprint(e.Secret) != "(secret)" || len(e.Lacks) > 0 {
		t.Errorf("%s, %d bytes of CA, secret %v, lacks %v", e.URL, len(e.CA), e.Secret, e.Lacks)
	}
	if err := errors.Join(site.Close(t.Context()), made.Close()); err != nil {
		t.Error(err)
	}
	spec, err = result.ParseSpec(realCluster(t) + "&vantage=here&insecure-skip-tls-verify=yes")
	if err != nil {
		t.Fatal(err)
	}
	if made, err = New(spec, allNeeds(), builtAgent, "knotmeter", "agent"); err != nil {
		t.Fatal(err)
	}
	if _, err := targets.OpenOne(t.Context(), made, apiPlacement()); !errors.Is(err, result.ErrNotSupported) {
		t.Errorf("without a check of the certificate: %v", err)
	}
	if err := made.Close(); err != nil {
		t.Error(err)
	}
}

func mountsToken(m corev1.VolumeMount) bool { return m.Name == manifest.TokenVolume }
