// Package e2e is what end-to-end tests have in common: a cluster that the environment names, a way to it next to the
// program's own, and the program under test. The tests are in the folders below, by what they need of a cluster, and in
// those of the packages that they are about. All are skipped without a cluster; on-cluster gives them one.
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
	// kubeconfigVariable names the kubeconfig of a cluster that tests may use; without it they are skipped.
	kubeconfigVariable = "KNOTMETER_E2E_KUBECONFIG"
	// programVariable names the program under test; without it one is compiled.
	programVariable = "KNOTMETER_E2E_PROGRAM"

	// Managed selects what the program makes.
	Managed = "app.kubernetes.io/managed-by=knotmeter"
)

// A Cluster is one that tests may use. Its client has no limit of its own.
type Cluster struct {
	kubernetes.Interface
	Config     *rest.Config
	Kubeconfig string
}

// Kubeconfig is the file that the environment names. The test is skipped if that is none.
func Kubeconfig(t testing.TB) string {
	t.Helper()
	file := os.Getenv(kubeconfigVariable)
	if file == "" {
		t.Skip("there is no cluster: " + kubeconfigVariable + " names no kubeconfig")
	}
	return file
}

// Open is the cluster that the environment names. The test is skipped if that is none, and fails if something of the
// program's is there already.
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

// kinds are what the program makes on clusters, and where the API server lists them.
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

// Left lists what there is of the program's, by its label: "pod NAMESPACE/NAME". It may be asked when the test has
// ended.
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

// NothingLeft fails the test if there is anything of the program's.
func (c *Cluster) NothingLeft(t testing.TB) {
	t.Helper()
	if left := c.Left(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Program is the program under test.
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

// Runs are the runs of a directory of results; said is what the program said, for when there are none.
func Runs(t testing.TB, dir, said string) []result.Run {
	t.Helper()
	r, err := store.Open(dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return r.Runs
}
