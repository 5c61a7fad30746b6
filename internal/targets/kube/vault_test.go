package kube

import (
	"errors"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/vault"
)

func TestVaultManifests(t *testing.T) {
	for name, text := range map[string]string{
		"vault-1": "kube:?vault=deploy",
		"vault-2": "kube:?vault=deploy&vault-replicas=2&vault-cpu=2&vault-memory=8Gi",
		"vault-3": "kube:?vault=deploy&vault-replicas=3&vault-image=knotmeter.local/vault:1&ip=6" +
			"&runtime-class=kata&config=testdata/settings.yaml",
		"vault-volumes": "kube:?vault=deploy&vault-replicas=2&vault-storage-class=fast&size=5Gi",
	} {
		b := vaultPlan(t, text)
		b.VolumeNodes = []string{"node-3", "node-4"}
		objects := []any{b.ConfigSecret([]byte("certificate"), []byte("key"), "0123")}
		for i := range b.Wanted.Replicas {
			if class := b.Wanted.StorageClass; class != "" {
				objects = append(objects, b.Claim(i, class, true))
			}
			objects = append(objects, b.Replica(i))
		}
		golden.Check(t, "testdata/"+name+".yaml", manifests(t, objects...))
	}
}

// TestVaultRestricted checks that a replica satisfies the restricted Pod Security Standard, and has no site label.
func TestVaultRestricted(t *testing.T) {
	b := vaultPlan(t, "kube:?vault=deploy")
	p := b.Replica(0)
	c := p.Spec.Containers[0]
	switch {
	case !*p.Spec.SecurityContext.RunAsNonRoot || *p.Spec.SecurityContext.RunAsUser == 0 ||
		p.Spec.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault:
		t.Errorf("%+v", p.Spec.SecurityContext)
	case *c.SecurityContext.AllowPrivilegeEscalation || !slices.Equal(c.SecurityContext.Capabilities.Drop,
		[]corev1.Capability{"ALL"}) || len(c.SecurityContext.Capabilities.Add) > 0 ||
		!*c.SecurityContext.ReadOnlyRootFilesystem:
		t.Errorf("%+v", c.SecurityContext)
	case p.Spec.HostNetwork || p.Spec.HostPID || *p.Spec.AutomountServiceAccountToken:
		t.Errorf("%+v", p.Spec)
	case p.Labels[manifest.LabelSite] != "" || p.Labels[manifest.LabelManaged] != manifest.ManagedBy ||
		p.Labels[manifest.LabelExperiment] != "abc":
		t.Errorf("%v", p.Labels)
	}
	for _, v := range p.Spec.Volumes {
		if v.Secret == nil && v.EmptyDir == nil {
			t.Errorf("volume %s is of a kind that is not restricted", v.Name)
		}
	}
}

func TestVaultOptions(t *testing.T) {
	for text, want := range map[string]string{
		"kube:?vault=deploy&vault-replicas=4":        "1, 2, 3 or 5",
		"kube:?vault=deploy&vault-cpu=0.5":           "number of CPUs",
		"kube:?vault=deploy&vault-memory=8":          "a size from 100Mi on",
		"kube:?vault=deploy&vault-storage-class=A_b": "the name of a storage class",
		"kube:?vault-storage-class=fast":             "needs vault=deploy",
		"kube:?vault-cpu=2":                          "needs vault=deploy",
		"kube:?vault-replicas=3":                     "needs vault=deploy",
		"kube:?vault=deploy&vault-namespace=x":       "a Vault of its own",
		"kube:?vault=10.0.0.1:8200":                  "it is http://HOST:PORT",
		"kube:?vault=https://v:8200&vault-ask=none":  "all or leader",
	} {
		spec, err := result.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parse(spec); !errors.Is(err, result.ErrSpec) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v does not say %q", text, err, want)
		}
	}
	t.Setenv("VAULT_ADDR", "")
	k := newTarget(parseOptions(t, "kube:"), nil, nil)
	k.unreachable = true
	if err := k.Supports(targets.Placement{Application: vault.Name}); !errors.Is(err, result.ErrNotSupported) ||
		!strings.Contains(err.Error(), "VAULT_ADDR") {
		t.Errorf("no Vault: %v", err)
	}
	if err := k.Supports(targets.Placement{}); err != nil {
		t.Errorf("another application: %v", err)
	}
}

// TestVaultVolumeRights checks that rights on volumes are checked and printed only if replicas have volumes.
func TestVaultVolumeRights(t *testing.T) {
	refusing := fake.NewClientset()
	refusing.PrependReactor("create", "selfsubjectaccessreviews", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, &authorizationv1.SelfSubjectAccessReview{}, nil
	})
	const plain = "kube:?namespace=bench&volume=root&vault=deploy"
	for text, wanted := range map[string]bool{plain: false, plain + "&vault-storage-class=fast": true} {
		spec, err := result.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		printed, err := RBAC(spec, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(printed, "Only for the data of Vault (vault-storage-class=): creates and deletes "+
			"PersistentVolumeClaims") != wanted || strings.Contains(printed, "name: knotmeter-storage-wide") != wanted {
			t.Errorf("%s: %s", text, printed)
		}
		k := newTarget(parseOptions(t, text), nil, nil)
		asks := targets.Placement{Application: vault.Name}
		missing, err := cluster.MissingRights(t.Context(), refusing, k.options.need(nil), asks)
		want := []string{"persistentvolumeclaims (create, get, list, watch, delete)", "persistentvolumes (get, list)"}
		if !wanted {
			want = nil
		}
		if err != nil || strings.Join(missing, "; ") != strings.Join(want, "; ") {
			t.Errorf("%s lacks %q, %v", text, missing, err)
		}
	}
}
