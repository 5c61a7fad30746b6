package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/targettest"
	"github.com/knotmeter/knotmeter/test/e2e"
)

// realCluster returns the text of a target on a real cluster, to which options can be added. Its nodes must have the
// image KNOTMETER_E2E_IMAGE (default: the agent's own), built with --tools echo,cat,sleep,false.
func realCluster(t *testing.T) string {
	t.Helper()
	file := e2e.Kubeconfig(t)
	image := os.Getenv("KNOTMETER_E2E_IMAGE")
	if image == "" {
		image = manifest.DefaultImage
	}
	return "kube:?kubeconfig=" + file + "&image=" + image
}

func newTestTarget(t *testing.T, text string) *kubeTarget {
	t.Helper()
	spec, err := result.ParseSpec(text)
	if err != nil {
		t.Fatal(err)
	}
	made, err := New(spec, allNeeds(), builtAgent)
	if err != nil {
		t.Fatal(err)
	}
	return made.(*kubeTarget)
}

// admin returns a separate client of the cluster.
func admin(t *testing.T) *cluster.Cluster {
	t.Helper()
	c, err := parseOptions(t, realCluster(t)).Kubeconfig.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func leftovers(t *testing.T, c *cluster.Cluster) []string {
	t.Helper()
	names, err := listLeftovers(context.WithoutCancel(t.Context()), c) // also called from t.Cleanup
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestConformance(t *testing.T) {
	c := admin(t)
	given := namespaceFor(t, c, "")
	targettest.Suite(t, targettest.Config{
		New: func(t *testing.T) targets.Target {
			text := realCluster(t) + "&rotate-nodes=yes"
			// Kubernetes takes seconds to remove a namespace, so only the tests of cancelled and of full sites create
			// one.
			if !strings.HasSuffix(t.Name(), "/CancelFirstOpen") && !strings.HasSuffix(t.Name(), "/Open") {
				text += "&namespace=" + given
			}
			return newTestTarget(t, text)
		},
		Offers: append(targettest.On(result.PodPodOther, result.NodeSvcSame),
			targets.Placement{AsksAPI: true}),
		Left:    func(t *testing.T) []string { return leftovers(t, c) },
		Place:   hostname,
		Moments: []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond, 300 * time.Millisecond, time.Second},
	})
}

// hostname returns a pod's name, which is never used again.
func hostname(t *testing.T, h host.Host) string {
	t.Helper()
	var out bytes.Buffer
	if err := h.Run(t.Context(), host.Cmd{Args: []string{"cat", "/etc/hostname"}, Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// namespaceFor creates a namespace for a test; level is its Pod Security level, or "".
func namespaceFor(t *testing.T, c *cluster.Cluster, level string) string {
	t.Helper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: map[string]string{}}}
	if level != "" {
		n.Labels["pod-security.kubernetes.io/enforce"] = level
	}
	n, err := c.CoreV1().Namespaces().Create(t.Context(), n, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := removeNamespace(ctx, c, n.Name); err != nil {
			t.Error(err)
		}
	})
	return n.Name
}

// TestFaults checks that an obstacle is reported within seconds, with its cause and a remedy, and leaves nothing.
func TestFaults(t *testing.T) {
	c := admin(t)
	quota := func(t *testing.T, namespace string) {
		_, err := c.CoreV1().ResourceQuotas(namespace).Create(t.Context(), &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "few"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("1")}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	limits := func(t *testing.T, namespace string) {
		_, err := c.CoreV1().LimitRanges(namespace).Create(t.Context(), &corev1.LimitRange{
			ObjectMeta: metav1.ObjectMeta{Name: "small"},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
			}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name, options string
		path          result.Path
		prepare       func(*testing.T, string)
		namespace     bool
		unsupported   bool
		says          []string
	}{
		{name: "no image", options: "image=127.0.0.1:1/absent:1", path: result.PodPodOther,
			says: []string{"cannot get the image 127.0.0.1:1/absent:1", "image="}},
		{name: "quota", path: result.PodPodOther, namespace: true, prepare: quota,
			says: []string{"quota of the namespace", "raise it"}},
		{name: "limits", path: result.PodPodOther, namespace: true, prepare: limits,
			says: []string{"LimitRange", "config="}},
		{name: "restricted", path: result.NodeNode, namespace: true, unsupported: true,
			says: []string{"node paths need", "refuses"}},
		{name: "no namespace", options: "namespace=there-is-none", path: result.PodPodOther,
			says: []string{"there is no namespace there-is-none"}},
		{name: "no second node", options: "node-selector=kubernetes.io/hostname%3Dnode-1", path: result.PodPodOther,
			unsupported: true, says: []string{"no second node", "node-selector"}},
		{name: "no node", options: "node-selector=no%3Dsuch", path: result.PodPodOther,
			says: []string{"no node can have our pods", "node-selector"}},
		{name: "no runtime class", options: "runtime-class=there-is-none", path: result.PodPodOther,
			says: []string{"there-is-none"}},
	} {
		t.Run(strings.ReplaceAll(test.name, " ", "-"), func(t *testing.T) {
			text := strings.TrimSuffix(realCluster(t)+"&"+test.options, "&")
			if strings.Contains(test.options, "image=") {
				text = "kube:?kubeconfig=" + e2e.Kubeconfig(t) + "&" + test.options
			}
			if test.namespace {
				n := namespaceFor(t, c, "restricted")
				text += "&namespace=" + n
				if test.prepare != nil {
					test.prepare(t, n)
				}
			}
			k := newTestTarget(t, text)
			began := time.Now()
			_, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: test.path})
			t.Logf("after %.1f s: %v", time.Since(began).Seconds(), err)
			if err == nil || errors.Is(err, result.ErrNotSupported) != test.unsupported {
				t.Errorf("not supported: %v", errors.Is(err, result.ErrNotSupported))
			}
			for _, words := range test.says {
				if err != nil && !strings.Contains(err.Error(), words) {
					t.Errorf("it does not say %q", words)
				}
			}
			if err := k.Close(); err != nil {
				t.Error(err)
			}
			if left := leftovers(t, c); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestPodRemoved checks that a command ends with an error if its pod is removed, and that nothing is left.
func TestPodRemoved(t *testing.T) {
	c := admin(t)
	k := newTestTarget(t, realCluster(t))
	site, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: result.PodPodOther})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- site.Server.Run(t.Context(), host.Cmd{Args: []string{"sleep", "600"}}) }()
	pods := c.CoreV1().Pods(k.claimed.namespace)
	if err := pods.DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))},
		metav1.ListOptions{LabelSelector: manifest.LabelRole + "=server"}); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("a command in a pod that was removed ended without an error")
	} else {
		t.Log(err)
	}
	if err := errors.Join(site.Close(t.Context()), k.Close()); err != nil {
		t.Error(err)
	}
	if left := leftovers(t, c); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// targetThroughProxy returns a target whose connections to the API server can be cut.
func targetThroughProxy(t *testing.T) (string, *e2e.Proxy) {
	t.Helper()
	direct, file := realCluster(t), filepath.Join(t.TempDir(), "kubeconfig")
	proxy := e2e.StartProxy(t, e2e.Kubeconfig(t), file)
	return strings.Replace(direct, e2e.Kubeconfig(t), file, 1), proxy
}

// TestConnectionCut checks that a cut connection costs only the run: its command ends at both ends, and the site can be
// removed.
func TestConnectionCut(t *testing.T) {
	c := admin(t)
	text, proxy := targetThroughProxy(t)
	k := newTestTarget(t, text)
	site, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: result.PodPodOther})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- site.Server.Run(t.Context(), host.Cmd{Args: []string{"sleep", "600"}}) }()
	awaitProgram(t, site.Server, "sleep", true)
	proxy.Cut()
	if err := <-ended; !errors.Is(err, remote.ErrLost) {
		t.Errorf("a command whose connection was cut: %v", err)
	} else {
		t.Log(err)
	}
	awaitProgram(t, site.Server, "sleep", false)
	if err := errors.Join(site.Close(t.Context()), k.Close()); err != nil {
		t.Error(err)
	}
	if left := leftovers(t, c); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// awaitProgram waits until a program runs in a pod, or no longer does.
func awaitProgram(t *testing.T, h host.Host, name string, wanted bool) {
	t.Helper()
	args := []string{"cat"}
	for pid := range 200 {
		args = append(args, fmt.Sprintf("/proc/%d/comm", pid+1))
	}
	for range 100 {
		var out bytes.Buffer
		err := h.Run(t.Context(), host.Cmd{Args: args, Stdout: &out})
		if exit := new(host.ExitError); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if slices.Contains(strings.Fields(out.String()), name) == wanted {
			return
		}
	}
	t.Fatalf("%s runs on %s: %v", name, h.Name(), !wanted)
}

// TestClean checks that clean finds the leftovers of a killed experiment by their label and removes them.
func TestClean(t *testing.T) {
	c := admin(t)
	given := namespaceFor(t, c, "")
	for _, options := range []string{"", "&namespace=" + given} {
		if _, err := targets.OpenOne(t.Context(), newTestTarget(t, realCluster(t)+options),
			targets.Placement{Path: result.PodSvcOther}); err != nil {
			t.Fatal(err)
		}
	}
	spec, err := result.ParseSpec(realCluster(t))
	if err != nil {
		t.Fatal(err)
	}
	if removed, err := Clean(t.Context(), spec, nil, targets.Cleaning{Found: func(targets.Leftover) {}}); err != nil ||
		len(removed) != 0 {
		t.Errorf("what no Lease tells of is removed: %v, %v", removed, err)
	}
	removed, err := Clean(t.Context(), spec, nil, cleanAll())
	// Of each site two pods and a Service, and the one namespace that was made.
	if err != nil || len(removed) != 7 {
		t.Errorf("removed %v, %v", removed, err)
	}
	if left := leftovers(t, c); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if removed, err := Clean(t.Context(), spec, nil, cleanAll()); err != nil || len(removed) != 0 {
		t.Errorf("removed again: %v, %v", removed, err)
	}
}

// cleanAll returns the options to remove also what belongs to running experiments.
func cleanAll() targets.Cleaning {
	return targets.Cleaning{All: true, Found: func(targets.Leftover) {}}
}

// asUser returns a target that impersonates another user.
func asUser(t *testing.T, user string) string {
	t.Helper()
	realCluster(t)
	config, err := clientcmd.LoadFromFile(e2e.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range config.AuthInfos {
		info.Impersonate = user
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return strings.Replace(realCluster(t), e2e.Kubeconfig(t), file, 1)
}

// TestRBACIsEnough checks that the printed rights suffice for a site and for facts, and that an error names a missing
// right.
func TestRBACIsEnough(t *testing.T) {
	c := admin(t)
	given := namespaceFor(t, c, "restricted")
	for i, options := range []string{"", "&namespace=" + given, "&namespace=" + given +
		"&client-node=node-1&server-node=node-2"} {
		user := fmt.Sprintf("knotmeter-test-%d", i)
		text := asUser(t, user) + options
		k := newTestTarget(t, text)
		_, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: result.PodSvcOther})
		if err == nil || !strings.Contains(err.Error(), "user "+user+" may not") {
			t.Errorf("%q without rights: %v", options, err)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
		undo := grant(t, c, user, cluster.Roles(parseOptions(t, text).need(allNeeds())))
		k = newTestTarget(t, text)
		site, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: result.PodSvcOther})
		if err == nil {
			err = site.Close(t.Context())
		}
		if err != nil {
			t.Errorf("%q with the rights: %v", options, err)
		}
		facts, err := k.Facts(t.Context())
		if err != nil || !slices.ContainsFunc(facts, func(f result.Fact) bool {
			return f.Name == "kubernetes" &&
				f.Value != result.Unknown
		}) {
			t.Errorf("%q: facts %v, %v", options, facts, err)
		}
		if err := k.Close(); err != nil {
			t.Errorf("%q: %v", options, err)
		}
		undo()
	}
}

// TestAllowed checks that rights beyond those of network paths are reported as missing until they are granted.
func TestAllowed(t *testing.T) {
	c := admin(t)
	given := namespaceFor(t, c, "restricted")
	const user = "knotmeter-test-allowed"
	text := asUser(t, user) + "&namespace=" + given + "&client-node=node-1&server-node=node-2"
	roles := map[string]any{}
	for _, d := range cluster.Roles(parseOptions(t, text).need(allNeeds())) {
		switch role := d.(type) {
		case rbacv1.Role:
			roles[role.Name] = role
		case rbacv1.ClusterRole:
			roles[role.Name] = role
		}
	}
	k := newTestTarget(t, text)
	defer func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}()
	undo := grant(t, c, user, []any{roles["knotmeter"]})
	defer undo()
	for _, test := range []struct {
		p     targets.Placement
		roles []any
		lacks string
	}{
		{apiPlacement(), []any{roles["knotmeter-api"]},
			"lacks rights on serviceaccounts (create, delete, list), roles (create, delete, list), "},
		{targets.Placement{Volume: true}, []any{roles["knotmeter-storage"], roles["knotmeter-storage-wide"]},
			"lacks rights on persistentvolumeclaims (create, get, list, watch, delete), persistentvolumes (get, list); "},
	} {
		if err := k.Allowed(t.Context(), test.p); err == nil ||
			!strings.Contains(err.Error(), test.lacks) {
			t.Errorf("%+v without the rights: %v", test.p, err)
		}
		undo := grant(t, c, user, test.roles)
		if err := k.Allowed(t.Context(), test.p); err != nil {
			t.Errorf("%+v with the rights: %v", test.p, err)
		}
		undo()
	}
	for _, p := range []targets.Placement{{Path: result.PodPodOther}, {}} {
		if err := k.Allowed(t.Context(), p); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// TestRBACIsNotMore checks that each rule is needed: without it there is no run, or a fact is unknown.
func TestRBACIsNotMore(t *testing.T) {
	c := admin(t)
	given := namespaceFor(t, c, "restricted")
	const user = "knotmeter-test-less"
	text := asUser(t, user) + "&namespace=" + given + "&client-node=node-1&server-node=node-2"
	for i, left := range cluster.SiteRules {
		name := left.Resources[0]
		if name == "events" {
			continue // they explain pods that do not start, of which this cluster has none
		}
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			role := cluster.Roles(parseOptions(t, text).need(allNeeds()))[0].(rbacv1.Role)
			role.Rules = slices.Delete(slices.Clone(cluster.SiteRules), i, i+1)
			defer grant(t, c, user, []any{role})()
			k := newTestTarget(t, text)
			site, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: result.PodSvcOther})
			if err == nil {
				defer func() {
					if err := site.Close(t.Context()); err != nil {
						t.Error(err)
					}
				}()
			}
			if name == "networkpolicies" {
				if err != nil ||
					result.FactOf(cluster.PolicyFacts(t.Context(), k.reached.cluster, given), "network-policies") != result.Unknown {
					t.Errorf("the policies are known, or there is no run: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "may not") || !strings.Contains(err.Error(), name) {
				t.Errorf("without a right on %s: %v", name, err)
			}
			spec, err := result.ParseSpec(realCluster(t))
			if err != nil {
				t.Fatal(err)
			}
			// Objects that could not be removed without the right are removed with it.
			if _, err := Clean(t.Context(), spec, nil, cleanAll()); err != nil {
				t.Error(err)
			}
		})
	}
}

// grant grants a user roles, waits until the API server applies them, and returns a function that removes them. Names
// are unique, because the API server may learn of a role's removal after the next binding to that name.
func grant(t *testing.T, c *cluster.Cluster, user string, documents []any) (undo func()) {
	t.Helper()
	subjects := []rbacv1.Subject{{Kind: "User", APIGroup: "rbac.authorization.k8s.io", Name: user}}
	meta := metav1.ObjectMeta{GenerateName: user + "-"}
	var undos []func() error
	ctx := context.WithoutCancel(t.Context())
	for _, d := range documents {
		switch d := d.(type) {
		case rbacv1.Role:
			roles, bindings := c.RbacV1().Roles(d.Namespace), c.RbacV1().RoleBindings(d.Namespace)
			d.ObjectMeta = meta
			role := must(roles.Create(ctx, &d, metav1.CreateOptions{}))(t)
			bound := must(bindings.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects,
				RoleRef: rbacv1.RoleRef{Kind: "Role", Name: role.Name}}, metav1.CreateOptions{}))(t)
			undos = append(undos, func() error { return roles.Delete(ctx, role.Name, metav1.DeleteOptions{}) },
				func() error { return bindings.Delete(ctx, bound.Name, metav1.DeleteOptions{}) })
			awaitRights(t, c, user, role.Namespace, role.Rules)
		case rbacv1.ClusterRole:
			roles, bindings := c.RbacV1().ClusterRoles(), c.RbacV1().ClusterRoleBindings()
			d.ObjectMeta = meta
			role := must(roles.Create(ctx, &d, metav1.CreateOptions{}))(t)
			bound := must(bindings.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects,
				RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role.Name}}, metav1.CreateOptions{}))(t)
			undos = append(undos, func() error { return roles.Delete(ctx, role.Name, metav1.DeleteOptions{}) },
				func() error { return bindings.Delete(ctx, bound.Name, metav1.DeleteOptions{}) })
			awaitRights(t, c, user, "", role.Rules)
		}
	}
	return func() {
		for _, undo := range undos {
			if err := undo(); err != nil {
				t.Error(err)
			}
		}
	}
}

// must returns a value, and fails the test if there is an error.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// awaitRights waits until the API server allows a user the first verb of each rule.
func awaitRights(t *testing.T, c *cluster.Cluster, user, namespace string, rules []rbacv1.PolicyRule) {
	t.Helper()
	for _, r := range rules {
		asked := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user}}
		if len(r.NonResourceURLs) > 0 {
			asked.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: r.NonResourceURLs[0],
				Verb: r.Verbs[0]}
		} else {
			resource, sub, _ := strings.Cut(r.Resources[0], "/")
			asked.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: r.Verbs[0],
				Group: r.APIGroups[0], Resource: resource, Subresource: sub,
				Name: strings.Join(r.ResourceNames[:min(1, len(r.ResourceNames))], "")}
		}
		err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true,
			func(ctx context.Context) (bool, error) {
				answer, err := c.AuthorizationV1().SubjectAccessReviews().Create(ctx, asked, metav1.CreateOptions{})
				return err == nil && answer.Status.Allowed, err
			})
		if err != nil {
			t.Fatalf("%s may not yet %s: %v", user, r, err)
		}
	}
}
