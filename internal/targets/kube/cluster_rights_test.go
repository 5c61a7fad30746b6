package kube

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/api"
	"github.com/knotmeter/knotmeter/internal/family/api/kubeapi"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// TestRightsAreEnough checks that every case runs and cleans up with the rights planned for it, and reads the server's
// metrics if that is planned. Cases that measure the effect of changes need a pod, and have their own tests.
func TestRightsAreEnough(t *testing.T) {
	c := admin(t)
	e := host.Endpoint{Namespace: namespaceFor(t, c, "restricted"), Image: manifest.DefaultImage,
		Labels: map[string]string{manifest.LabelExperiment: "rights"}}
	_, config, err := parseOptions(t, realCluster(t)).Kubeconfig.Load()
	if err == nil {
		err = cluster.AddCredentials(t.Context(), config, &e)
	}
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Clone(api.VerbsWithoutResource())
	for _, resource := range api.Resources() {
		for _, verb := range api.Verbs(resource) {
			names = append(names, resource+"/"+verb)
		}
	}
	for i, name := range names {
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			if strings.HasPrefix(name, "namespace/") {
				name += ":rate=5" // controllers take their time to remove namespaces
			}
			w, err := api.Parse(name)
			if err != nil {
				t.Fatal(err)
			}
			user, given := fmt.Sprintf("knotmeter-test-call-%d", i), cluster.Merge(w.Traits().Needs.Rights)
			defer grant(t, c, user, roles(e.Namespace, given))()
			e.Secret.Header = map[string][]string{"Impersonate-User": {user}, "Impersonate-Group": {"system:authenticated"}}
			r, err := kubeapi.Run(t.Context(),
				api.Run{Endpoint: e, Workload: w, Times: family.Times{Window: time.Second}})
			if err != nil || r.Total.OK == 0 || r.Total.Failed() > 0 || len(r.Invalid) > 0 {
				t.Errorf("%+v, %v", r, err)
			}
			may := slices.ContainsFunc(given.ClusterWide, func(g cluster.Grant) bool { return g.Name == "metrics" })
			if read := r.Facts["server.whole"] != ""; read != may {
				t.Errorf("the server's metrics were read: %v; %v", read, r.Facts)
			}
		})
	}
}

// roles returns rights as roles to grant.
func roles(namespace string, r cluster.Rights) []any {
	list := []any{rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "here", Namespace: namespace}, Rules: r.InNamespace}}
	for _, g := range r.ClusterWide {
		list = append(list, rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: g.Name}, Rules: g.Rules})
	}
	return list
}

// beginTarget returns a target with a plan of calls of the API server.
func beginTarget(t *testing.T, text string, calls ...string) *kubeTarget {
	t.Helper()
	k, p := newTestTarget(t, text), targets.Plan{Experiment: "test", Version: "test", Share: true}
	for _, c := range calls {
		w, err := api.Parse(c)
		if err != nil {
			t.Fatal(err)
		}
		p.Placements = append(p.Placements, w.Traits().Needs)
	}
	if _, err := k.Begin(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return k
}

// TestPlannedRights checks that no right on namespaces is granted if no planned case needs one, and that the
// experiment's namespace is restricted then.
func TestPlannedRights(t *testing.T) {
	c := admin(t)
	k := beginTarget(t, realCluster(t), "configmap/watch", "floor")
	site, err := targets.OpenOne(t.Context(), k, k.plan.Placements[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range listAccounts(t, c) {
		if strings.Contains(name, "clusterrole") {
			t.Errorf("there is %s", name)
		}
	}
	n, err := c.CoreV1().Namespaces().Get(t.Context(), k.claimed.namespace, metav1.GetOptions{})
	if err != nil || n.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Errorf("%v, %v", n.Labels, err)
	}
	role, err := c.RbacV1().Roles(k.claimed.namespace).Get(t.Context(), k.claimed.account.Name, metav1.GetOptions{})
	want := cluster.Merge(rightsOf(k.plan.Placements)).InNamespace
	if err != nil || fmt.Sprint(role.Rules) != fmt.Sprint(want) {
		t.Errorf("%v, not %v, %v", role.Rules, want, err)
	}
	if _, err := k.Facts(t.Context()); err != nil { // without pods in the network of their node
		t.Error(err)
	}
	closeAndCheck(t, c, k, site)
}

// TestMissingProgram checks that facts find which programs an image lacks, and that no run that needs them starts.
func TestMissingProgram(t *testing.T) {
	k := newTestTarget(t, realCluster(t))
	lacks := targets.Placement{Path: result.PodPodSame, Program: "no-such-program"}
	has := targets.Placement{Path: result.PodPodSame, Program: "echo"}
	if _, err := k.Begin(t.Context(), targets.Plan{Experiment: "test", Share: true, Placements: []targets.Placement{lacks,
		has}}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Facts(t.Context()); err != nil {
		t.Error(err)
	}
	_, opened := targets.OpenOne(t.Context(), k, lacks)
	for _, err := range []error{k.Supports(lacks), opened} {
		if !errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(), "no-such-program is not on the pods "+
			"of the image") {
			t.Errorf("%v", err)
		}
	}
	if err := k.Supports(has); err != nil {
		t.Error(err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}

// printTokenAndWait creates an account, prints its token, and waits to be killed.
func printTokenAndWait(t *testing.T) {
	k := beginTarget(t, realCluster(t), "namespace/get", "configmap/get")
	k.accountTerm = shortTerm
	site, err := targets.OpenOne(t.Context(), k, k.plan.Placements[0])
	if err != nil {
		t.Fatal(err)
	}
	var token bytes.Buffer
	if err := site.Client.Run(t.Context(), host.Cmd{Args: []string{"cat", manifest.TokenFile},
		Stdout: &token}); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("token %s %s\n", k.claimed.namespace, token.String())
	time.Sleep(time.Hour)
}

// shortTerm is the lifetime of an account in tests; killedEnv makes this program the one that is killed.
const (
	shortTerm = 20 * time.Second
	killedEnv = "KNOTMETER_TEST_KILLED"
)

// TestAccountEndsAfterKill checks that an account lives as long as the program, beyond its term. After the program is
// killed, the account ends with its term, and its token becomes invalid.
func TestAccountEndsAfterKill(t *testing.T) {
	if os.Getenv(killedEnv) != "" {
		printTokenAndWait(t)
	}
	c := admin(t)
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env, cmd.Stderr = append(os.Environ(), killedEnv+"=yes"), os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	var words []string
	for in := bufio.NewScanner(out); len(words) != 3 && in.Scan(); {
		words = strings.Fields(in.Text())
		if len(words) > 0 && words[0] != "token" {
			t.Fatal(in.Text())
		}
	}
	namespace, client := words[1], clientWithToken(t, c, words[2])
	time.Sleep(shortTerm + 10*time.Second)
	for _, err := range tryRequests(t.Context(), client, namespace) {
		if err != nil {
			t.Errorf("while the program runs: %v", err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, 2*time.Minute, "the account to end", func() bool {
		return !slices.ContainsFunc(tryRequests(t.Context(), client, namespace),
			func(err error) bool { return !apierrors.IsUnauthorized(err) })
	})
	await(t, time.Minute, "pods and accounts to go", func() bool {
		pods, err := c.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0 && !slices.ContainsFunc(listAccounts(t, c), func(name string) bool {
			return !strings.Contains(name, "clusterrole")
		})
	})
	// The remaining bindings have no subject, and are removed with the namespace.
	if err := removeNamespace(t.Context(), c, namespace); err != nil {
		t.Error(err)
	}
	await(t, time.Minute, "the bindings to go with the namespace", func() bool { return len(listAccounts(t, c)) == 0 })
	if left := leftovers(t, c); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// tryRequests returns the errors of a request in the namespace and of one in the whole cluster.
func tryRequests(ctx context.Context, client kubernetes.Interface, namespace string) []error {
	_, maps := client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	_, namespaces := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	return []error{maps, namespaces}
}

// clientWithToken returns a client that authenticates with a token.
func clientWithToken(t *testing.T, c *cluster.Cluster, token string) kubernetes.Interface {
	t.Helper()
	config := rest.AnonymousClientConfig(c.Config)
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func await(t *testing.T, limit time.Duration, what string, is func() bool) {
	t.Helper()
	began := time.Now()
	for !is() {
		if time.Since(began) > limit {
			t.Fatalf("waited %v for %s", limit, what)
		}
		time.Sleep(time.Second)
	}
	t.Logf("%s: %.0f s", what, time.Since(began).Seconds())
}

// TestAccountIsMadeAgain checks that an account that expired, for example while the machine slept, is replaced before
// the next run.
func TestAccountIsMadeAgain(t *testing.T) {
	c := admin(t)
	k := beginTarget(t, realCluster(t), "configmap/get")
	k.accountTerm = shortTerm
	if err := openAndClose(t, k); err != nil {
		t.Fatal(err)
	}
	k.claimed.account.End() // no longer extended
	await(t, 2*time.Minute, "the account to go", func() bool {
		found, err := c.CoreV1().ServiceAccounts(k.claimed.namespace).List(t.Context(),
			metav1.ListOptions{LabelSelector: manifest.ManagedSelector()})
		return err == nil && len(found.Items) == 0
	})
	if err := openAndClose(t, k); err != nil {
		t.Error(err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if left := append(leftovers(t, c), listAccounts(t, c)...); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func openAndClose(t *testing.T, k *kubeTarget) error {
	t.Helper()
	site, err := targets.OpenOne(t.Context(), k, k.plan.Placements[0])
	if err != nil {
		return err
	}
	if why := site.Endpoint.Lacks; len(why) > 0 {
		t.Errorf("%v", why)
	}
	return site.Close(t.Context())
}
