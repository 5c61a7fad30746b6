// Package e2e provides end-to-end tests with a cluster that the environment names, a client of it that is independent
// of the program, and the program under test. The tests are in the folders below, by what they need of a cluster, and
// in the packages that they test. Without a cluster they are skipped; the script on-cluster starts one for them.
package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/store"
)

const (
	// kubeconfigVariable is the environment variable with the kubeconfig of a cluster for tests; without it they are
	// skipped.
	kubeconfigVariable = "KNOTMETER_E2E_KUBECONFIG"
	// programVariable is the environment variable with the path of the program under test; without it one is compiled.
	programVariable = "KNOTMETER_E2E_PROGRAM"

	// Managed is the label selector of the objects that the program creates.
	Managed = "app.kubernetes.io/managed-by=knotmeter"
)

// A Cluster is a cluster for tests. Its client has no rate limit.
type Cluster struct {
	kubernetes.Interface
	Config     *rest.Config
	Kubeconfig string
}

// Kubeconfig returns the kubeconfig that the environment names, and skips the test if it names none.
func Kubeconfig(t testing.TB) string {
	t.Helper()
	file := os.Getenv(kubeconfigVariable)
	if file == "" {
		t.Skip("there is no cluster: " + kubeconfigVariable + " names no kubeconfig")
	}
	return file
}

// Open returns the cluster that the environment names. It skips the test if there is none, and fails it if the cluster
// has leftovers of the program.
func Open(t *testing.T) *Cluster {
	t.Helper()
	c := &Cluster{Kubeconfig: Kubeconfig(t)}
	var err error
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	c.Config.QPS = -1
	if c.Interface, err = kubernetes.NewForConfig(c.Config); err != nil {
		t.Fatal(err)
	}
	if left := c.Left(t); len(left) > 0 {
		t.Fatalf("before the test there is %v", left)
	}
	return c
}

// kinds holds the kinds of objects that the program creates, and the API paths that list them.
var kinds = map[string]string{
	"namespace": "/api/v1/namespaces", "pod": "/api/v1/pods", "service": "/api/v1/services",
	"config map": "/api/v1/configmaps", "secret": "/api/v1/secrets", "claim": "/api/v1/persistentvolumeclaims",
	"service account": "/api/v1/serviceaccounts", "deployment": "/apis/apps/v1/deployments",
	"role": "/apis/rbac.authorization.k8s.io/v1/roles", "role binding": "/apis/rbac.authorization.k8s.io/v1/rolebindings",
	"cluster role":         "/apis/rbac.authorization.k8s.io/v1/clusterroles",
	"cluster role binding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
	"network policy":       "/apis/networking.k8s.io/v1/networkpolicies",
	"job":                  "/apis/batch/v1/jobs", "lease": "/apis/coordination.k8s.io/v1/leases",
}

// Left lists the program's objects on the cluster, by their label: "pod NAMESPACE/NAME". It may be called after the end
// of the test, when its context is canceled.
func (c *Cluster) Left(t testing.TB) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var names []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		text, err := c.CoreV1().RESTClient().Get().AbsPath(kinds[kind]).Param("labelSelector", Managed).DoRaw(ctx)
		var found metav1.PartialObjectMetadataList
		if err == nil {
			err = json.Unmarshal(text, &found)
		}
		if err != nil {
			t.Fatalf("%s: %v", kinds[kind], err)
		}
		for _, o := range found.Items {
			names = append(names, kind+" "+strings.TrimPrefix(o.Namespace+"/"+o.Name, "/"))
		}
	}
	return names
}

// NothingLeft fails the test if the cluster has objects of the program.
func (c *Cluster) NothingLeft(t testing.TB) {
	t.Helper()
	if left := c.Left(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Program returns the path of the program under test: the one that the environment names, or one that it compiles.
func Program(t testing.TB) string {
	t.Helper()
	if given := os.Getenv(programVariable); given != "" {
		return given
	}
	at := filepath.Join(t.TempDir(), "knotmeter")
	if out, err := exec.Command("go", "build", "-o", at,
		"github.com/knotmeter/knotmeter/cmd/knotmeter").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return at
}

// Runs returns the runs of a results directory. If it cannot be read, the test fails with the output of the program.
func Runs(t testing.TB, dir, output string) []result.Run {
	t.Helper()
	r, err := store.Open(dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return r.Runs
}
