package trial

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"time"

	"github.com/knotmeter/knotmeter/internal/apiserver"
	"github.com/knotmeter/knotmeter/internal/host/remote"
)

// hostname is the label by which pods find their node.
const hostname = "kubernetes.io/hostname"

// How long a pod still answers after it was told to end, as servers should whose Service may still send requests, and
// when it is ended at last, in seconds.
const (
	lingers = 4 * time.Second
	grace   = 6
)

// gate is a condition of a pod that the run sets.
const gate = "knotmeter.dev/open"

// serverSpec is a pod that answers probes, on the prober's node or on another one. It announces itself to an address,
// if there is one.
func (r *run) serverSpec(announce netip.AddrPort) map[string]any {
	spec := r.inventory("pod").PodSpec("")
	container := spec["containers"].([]any)[0].(map[string]any)
	container["args"] = append([]string{remote.RespondCommand},
		responder{port: port, lock: r.token.Lock(), lingers: lingers, announce: announce}.args()...)
	spec["terminationGracePeriodSeconds"] = grace
	operator := "NotIn"
	if r.Workload.Same {
		operator = "In"
	}
	if r.Endpoint.Node != "" {
		spec["affinity"] = map[string]any{"nodeAffinity": map[string]any{
			"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{"nodeSelectorTerms": []any{map[string]any{
				"matchExpressions": []any{map[string]any{"key": hostname, "operator": operator,
					"values": []string{r.Endpoint.Node}}}}}}}}
	}
	maps.Copy(spec, r.Endpoint.Pod)
	return spec
}

// A server is a pod that answers probes.
type server struct {
	n    uint64
	name string
	ip   netip.Addr
}

func (s server) at() netip.AddrPort { return netip.AddrPortFrom(s.ip, port) }

// startTime is how long a pod may take to start: half a minute more than the objective for pods of an image that is
// there.
const startTime = 35 * time.Second

// serve starts a pod that answers probes, and waits until it runs; and until it is ready, unless it has a gate.
func (r *run) serve(ctx context.Context, gated bool) (server, error) {
	spec := r.serverSpec(netip.AddrPort{})
	if gated {
		spec["readinessGates"] = []any{map[string]any{"conditionType": gate}}
	}
	n, _, err := r.post(ctx, "pod", map[string]any{"spec": spec})
	if err != nil {
		return server{}, err
	}
	return r.started(ctx, n, gated)
}

// started waits until a pod runs.
func (r *run) started(ctx context.Context, n uint64, gated bool) (server, error) {
	s := server{n: n, name: r.inventory("pod").ObjectName(n)}
	var p pod
	if !until(ctx, startTime, func() bool {
		p = r.state.pod(s.name)
		return p.ip != "" && p.running && (p.ready || gated)
	}) {
		return server{}, fmt.Errorf("pod %s does not start within %v: %s", s.name, startTime, r.why(p))
	}
	var err error
	s.ip, err = netip.ParseAddr(p.ip)
	return s, err
}

// why says what a pod waits for.
func (r *run) why(p pod) string {
	if p.waits == "no node" && !r.Workload.Same {
		return "no node takes it; the case wants a node other than the prober's, at=same does not"
	}
	return p.waits
}

// serviceSpec is a Service for all pods of the run.
func (r *run) serviceSpec() map[string]any {
	var ports []any
	for _, protocol := range []string{"TCP", "UDP"} {
		ports = append(ports, map[string]any{"name": "probe-" + map[string]string{"TCP": "tcp", "UDP": "udp"}[protocol],
			"port": port, "protocol": protocol})
	}
	return map[string]any{"spec": map[string]any{"selector": r.selector(), "ports": ports}}
}

// selector finds the pods of the run.
func (r *run) selector() map[string]string { return map[string]string{apiserver.LabelRun: r.id} }

// policySpec forbids all traffic to the pods of the run, and from them if it is said.
func (r *run) policySpec(egress bool) map[string]any {
	types := []string{"Ingress"}
	if egress {
		types = append(types, "Egress")
	}
	return map[string]any{"spec": map[string]any{"podSelector": map[string]any{"matchLabels": r.selector()},
		"policyTypes": types}}
}

// replicas are those of a Deployment that is rolled out.
const replicas = 2

// deploymentSpec is one whose pods go only when others are there for them.
func (r *run) deploymentSpec() map[string]any {
	spec := r.serverSpec(netip.AddrPort{})
	delete(spec, "restartPolicy") // theirs is always to be Always
	return map[string]any{"spec": map[string]any{
		"replicas": replicas, "selector": map[string]any{"matchLabels": r.selector()},
		"strategy": map[string]any{"rollingUpdate": map[string]any{"maxSurge": 1, "maxUnavailable": 0}},
		"template": map[string]any{"metadata": r.inventory("pod").PodMeta(), "spec": spec},
	}}
}
