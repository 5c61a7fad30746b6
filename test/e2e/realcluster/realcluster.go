// Package realcluster is what end-to-end tests have in common: a cluster that the environment names, a way to it beside
// the program's own, and the program under test. Only tests import it.
package realcluster

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
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

// kinds are what the program makes on clusters, by where the API server lists them.
func kinds() [][2]string {
	const core, apps, rbac = "/api/v1/", "/apis/apps/v1/", "/apis/rbac.authorization.k8s.io/v1/"
	return [][2]string{
		{"namespace", core + "namespaces"}, {"pod", core + "pods"}, {"service", core + "services"}, {"config map",
			core + "configmaps"},
		{"secret", core + "secrets"}, {"claim", core + "persistentvolumeclaims"}, {"service account",
			core + "serviceaccounts"},
		{"deployment", apps + "deployments"}, {"role", rbac + "roles"}, {"role binding", rbac + "rolebindings"},
		{"job", "/apis/batch/v1/jobs"},
		{"lease", "/apis/coordination.k8s.io/v1/leases"}, {"cluster role", rbac + "clusterroles"}, {"cluster role binding",
			rbac + "clusterrolebindings"},
	}
}

// Left lists what there is of the program's, by its label: "pod NAMESPACE/NAME". It may be asked when the test has
// ended.
func (c *Cluster) Left(t testing.TB) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var names []string
	for _, kind := range kinds() {
		text, err := c.CoreV1().RESTClient().Get().AbsPath(kind[1]).Param("labelSelector", Managed).DoRaw(ctx)
		var found metav1.PartialObjectMetadataList
		if err == nil {
			err = json.Unmarshal(text, &found)
		}
		if err != nil {
			t.Fatalf("%s: %v", kind[1], err)
		}
		for _, o := range found.Items {
			names = append(names, kind[0]+" "+strings.TrimPrefix(o.Namespace+"/"+o.Name, "/"))
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
