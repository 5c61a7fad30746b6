package kube

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
)

// A fakeAPI answers with given objects or status codes by path, and records requests.
type fakeAPI struct {
	mu       sync.Mutex
	has      map[string]any // object, or status code, by path
	requests []string
}

func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.requests = append(a.requests, r.Method+" "+r.URL.Path)
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	answer, ok := a.has[r.URL.Path]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		answer = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure",
			Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
	}
	if code, is := answer.(int); is {
		w.WriteHeader(code)
		answer = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure",
			Reason: metav1.StatusReasonForbidden, Code: int32(code)}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// serve returns a cluster that has these objects, and its API.
func serve(t *testing.T, has map[string]any) (*cluster.Cluster, *fakeAPI) {
	t.Helper()
	a := &fakeAPI{has: has}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	c, err := cluster.Dial(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return c, a
}

type object = map[string]any

// secret must not appear anywhere in facts.
const secret = "s3cr3t-t0ken"

// fullCluster returns a cluster with every plugin at once, and with a secret next to everything that is read.
func fullCluster() map[string]any {
	config := func(data object) object {
		data["password"], data["cilium-ca.key"], data["mtu"] = secret, secret, "1400 "+secret
		return object{"kind": "ConfigMap", "apiVersion": "v1", "data": data}
	}
	container := func(image string, args ...string) object {
		return object{"name": "c", "image": image, "args": append([]string{"--token=" + secret}, args...),
			"env": []object{{"name": "WEAVE_PASSWORD", "value": secret}}}
	}
	set := func(containers ...object) object {
		return object{
			"metadata": object{"annotations": object{"kubectl.kubernetes.io/last-applied-configuration": secret}},
			"spec":     object{"template": object{"spec": object{"containers": containers}}},
		}
	}
	maps := "/api/v1/namespaces/kube-system/configmaps/"
	return map[string]any{
		"/version": object{"gitVersion": "v1.34.1"},
		"/apis/apps/v1/daemonsets": object{"kind": "DaemonSetList", "apiVersion": "apps/v1", "items": []object{
			set(container("docker.io/calico/node:v3.31.0")), set(container("quay.io/cilium/cilium:v1.19.0")),
			set(container("weaveworks/weave-kube:2.8.1")), set(container("cloudnativelabs/kube-router:v2",
				"--bgp-password="+secret)),
		}},
		maps + "kube-proxy": config(object{"config.conf": "mode: nftables\nclientConnection:\n  token: " + secret + "\n"}),
		maps + "cilium-config": config(object{"routing-mode": "tunnel", "tunnel-protocol": "vxlan",
			"enable-ipsec-key": secret, "bpf-lb-mode": "dsr", "ipam": secret + " " + secret}),
		maps + "calico-config": config(object{"calico_backend": "bird", "veth_mtu": "1440", "etcd_key": secret,
			"cni_network_config": secret}),
		maps + "antrea-config": config(object{"antrea-agent.conf": "tunnelType: " + secret + "-" + secret + "-" + secret +
			"-" + secret + "\n"}),
		"/apis/crd.projectcalico.org/v1/ippools": object{"items": []object{
			{"metadata": object{"name": secret}, "spec": object{"ipipMode": "Never", "vxlanMode": "CrossSubnet",
				"natOutgoing": true, "cidr": secret}},
			{"spec": object{"ipipMode": secret, "disabled": true}},
		}},
		"/apis/crd.projectcalico.org/v1/felixconfigurations/default": object{"spec": object{"wireguardEnabled": true,
			"prometheusToken": secret}},
		"/apis/cilium.io/v2/ciliumnodeconfigs": object{"items": []object{{"spec": object{
			"nodeSelector": object{"matchLabels": object{"fast": "yes"}},
			"defaults":     object{"bpf-lb-acceleration": "native", "tunnel-protocol": "geneve", "key": secret},
		}}}},
		"/apis/cilium.io/v2/namespaces/ns/ciliumnetworkpolicies": object{"items": []object{
			{"metadata": object{"name": "allow"}, "spec": secret}}},
		"/apis/cilium.io/v2/ciliumclusterwidenetworkpolicies": object{"items": []object{
			{"metadata": object{"name": "deny-all"}}}},
		"/apis/networking.k8s.io/v1/namespaces/ns/networkpolicies": object{"kind": "NetworkPolicyList",
			"apiVersion": "networking.k8s.io/v1", "items": []object{{"metadata": object{"name": "b"}},
				{"metadata": object{"name": "a"}}}},
		"/apis/k8s.cni.cncf.io/v1/namespaces/ns/network-attachment-definitions/fast": object{"spec": object{"config": `{
			"plugins": [{"type": "macvlan", "master": "` + secret + `"}, {"type": "veth", "token": "` + secret + `"}]}`}},
		"/api/v1/secrets": object{"items": []object{{"data": object{"token": secret}}}},
	}
}

func gatherFacts(t *testing.T, c *cluster.Cluster) map[string]string {
	t.Helper()
	e := cluster.Gather(t.Context(), c)
	var fast, slow corev1.Node
	fast.Labels, slow.Labels = map[string]string{"fast": "yes"}, map[string]string{}
	for _, n := range []*corev1.Node{&fast, &slow} {
		n.Spec.ProviderID = "azure:///subscriptions/" + secret
		n.Annotations = map[string]string{"token": secret, "csi.volume.kubernetes.io/nodeid": secret,
			"flannel.alpha.coreos.com/backend-type": secret + " " + secret}
		n.Labels["kubernetes.azure.com/security-type"] = "ConfidentialVM"
	}
	e.Nodes = []corev1.Node{fast, slow}
	e.Node = &preflight.Report{Answers: map[string]string{"http://127.0.0.1:10249/proxyMode": "token " + secret}}
	values := map[string]string{}
	for _, f := range slices.Concat(cluster.PolicyFacts(t.Context(), c, "ns"), inspection.Facts(e)) {
		values[f.Name] = f.String()
	}
	values["chain"] = strings.Join(cluster.Chain(t.Context(), c, "ns/fast"), " + ")
	return values
}

// TestNoSecrets checks that facts are read only from the places named for them. No Secret and no token is read, and
// nothing next to the values that are read gets into a fact.
func TestNoSecrets(t *testing.T) {
	c, a := serve(t, fullCluster())
	values := gatherFacts(t, c)
	for name, value := range values {
		if strings.Contains(value, "s3cr3t") {
			t.Errorf("the fact %s has a secret: %s", name, value)
		}
	}
	want := map[string]string{
		"kubernetes": "v1.34.1", "cni": "calico + cilium + kube-router + weave", "provider": "azure",
		"encapsulation": "geneve | vxlan (config map cilium-config)",
		"encryption":    "none (config map cilium-config)",
		"cni-settings": "bpf-lb-acceleration=native bpf-lb-mode=dsr calico_backend=bird " +
			"pool(ipipMode=Never,vxlanMode=CrossSubnet,natOutgoing=true) veth_mtu=1440",
		"kube-proxy":       "replaced by kube-router, ipvs (arguments of kube-router)",
		"confidential-vm":  "label kubernetes.azure.com/security-type=ConfidentialVM",
		"chain":            "macvlan + veth",
		"network-policies": "2: a, b", "cilium-network-policies": "2: allow, deny-all",
	}
	got := map[string]string{}
	for name := range want {
		got[name] = values[name]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, asked := range a.requests {
		if !strings.HasPrefix(asked, "GET ") || strings.Contains(asked, "secret") || strings.Contains(asked, "token") ||
			strings.Contains(asked, "serviceaccounts") {
			t.Errorf("it asked %s", asked)
		}
	}
}

// TestNoRightsOnSecrets checks that the printed rights include none on Secrets or tokens, and that those of facts only
// allow reading.
func TestNoRightsOnSecrets(t *testing.T) {
	for _, r := range slices.Concat(cluster.SiteRules, cluster.CommonFactRules()) {
		for _, name := range slices.Concat(r.Resources, r.APIGroups, r.Verbs) {
			if strings.Contains(name, "secret") || strings.Contains(name, "token") ||
				strings.Contains(name, "serviceaccounts") || strings.Contains(name, "*") {
				t.Errorf("a right on %s", name)
			}
		}
	}
	for _, r := range cluster.CommonFactRules() {
		if slices.ContainsFunc(r.Verbs, func(v string) bool { return v != "get" && v != "list" }) {
			t.Errorf("facts take more than reading: %v", r)
		}
	}
}

// TestFactsRefused checks that the printed rights allow every request for facts, and that facts are unknown if a
// request is refused or finds nothing.
func TestFactsRefused(t *testing.T) {
	has := fullCluster()
	for path := range has {
		if path != "/version" {
			has[path] = http.StatusForbidden
		}
	}
	c, a := serve(t, has)
	values := gatherFacts(t, c)
	for _, name := range []string{"cni", "encryption", "cni-settings", "kube-proxy", "encapsulation", "network-policies",
		"cilium-network-policies"} {
		if values[name] != result.Unknown {
			t.Errorf("%s is %q", name, values[name])
		}
	}
	if values["chain"] != "" {
		t.Errorf("the plugins of a network are %q", values["chain"])
	}
	var resources []string
	for _, role := range cluster.Roles(parseOptions(t, "kube:?namespace=ns&default-network=ns/fast").need(allNeeds())) {
		if r, wide := role.(rbacv1.ClusterRole); wide {
			for _, rule := range r.Rules {
				resources = append(resources, rule.Resources...)
			}
		}
	}
	for _, r := range cluster.SiteRules {
		resources = append(resources, r.Resources...)
	}
	for _, asked := range a.requests {
		if !slices.ContainsFunc(resources, func(r string) bool { return strings.Contains(asked, "/"+r) }) &&
			asked != "GET /version" {
			t.Errorf("no printed right allows %s", asked)
		}
	}
	nothing, _ := serve(t,
		map[string]any{"/apis/networking.k8s.io/v1/namespaces/ns/networkpolicies": object{"kind": "NetworkPolicyList",
			"apiVersion": "networking.k8s.io/v1"}})
	values = gatherFacts(t, nothing)
	if values["network-policies"] != "none" || values["cilium-network-policies"] != "none" ||
		values["encapsulation"] != result.Unknown || values["kubernetes"] != result.Unknown {
		t.Errorf("a cluster without any of it: %v", values)
	}
}
