package dynamics

import (
	"time"

	"github.com/knotmeter/knotmeter/internal/load/probe"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// A Change is what a trial changes in a cluster while probes pass through it.
type Change string

// The changes.
const (
	PolicyDeny         Change = "policy-deny"
	PolicyAllow        Change = "policy-allow"
	PolicyEstablished  Change = "policy-established"
	PolicyFirst        Change = "policy-first"
	FirstPacket        Change = "first-packet"
	EndpointReady      Change = "endpoint-ready"
	EndpointGone       Change = "endpoint-gone"
	ServiceProgramming Change = "service-programming"
	Rollout            Change = "rollout"
)

// A kind holds the properties of a change.
type kind struct {
	about    string          // a description for readers
	verdict  string          // the metric that verdicts are about
	quantity string          // a name of that metric for readers
	rights   []targets.Right // of its runs
	trials   int             // default number of trials per run
	each     time.Duration   // usual time of a trial
	setup    time.Duration   // usual time before the first trial
}

// kinds holds the properties of every change. The default trials of a run take 4 to 10 s in all, without the setup.
var kinds = map[Change]kind{
	PolicyDeny: {"a NetworkPolicy forbids traffic to a pod", PartOf(probe.TCPNew) + metric.Programming,
		"time until it holds", policyRights, 4, 900 * time.Millisecond, 2 * time.Second},
	PolicyAllow: {"a NetworkPolicy that forbids traffic to a pod goes", PartOf(probe.TCPNew) + metric.Programming,
		"time until traffic passes", policyRights, 4, 900 * time.Millisecond, 2 * time.Second},
	PolicyEstablished: {"a NetworkPolicy forbids traffic to a pod to which a connection is open",
		PartOf(probe.TCP) + metric.Programming, "time until the connection is cut", policyRights, 1, 5 * time.Second,
		2 * time.Second},
	PolicyFirst: {"a pod starts for which a NetworkPolicy forbids all traffic", metric.LeakWindow,
		"time in which traffic passed", policyRights, 2, 4 * time.Second, time.Second},
	FirstPacket: {"a pod starts", PartOf(probe.TCPNew) + metric.Programming, "time until its first answer", podRights, 2,
		3 * time.Second, time.Second},
	EndpointReady: {"the only pod behind a Service becomes ready", PartOf(probe.TCPNew) + metric.Programming,
		"time until the Service answers", endpointRights, 2, 4 * time.Second, 3 * time.Second},
	EndpointGone: {"one of two pods behind a Service goes", PartOf(probe.TCPNew) + metric.LossWindow,
		"time in which requests fail", endpointRights, 1, 5 * time.Second, 4 * time.Second},
	ServiceProgramming: {"a Service is created for a pod that is ready", PartOf(probe.TCPNew) + metric.Programming,
		"time until it answers", serviceRights, 3, 2 * time.Second, 2 * time.Second},
	Rollout: {"a Deployment behind a Service is rolled out anew", PartOf(probe.TCPNew) + metric.LossWindow,
		"time in which requests fail", rolloutRights, 1, 10 * time.Second, 4 * time.Second},
}

// Changes returns all changes in the order of the documentation.
func Changes() []Change { return changes }

var changes = []Change{PolicyDeny, PolicyAllow, PolicyEstablished, PolicyFirst, FirstPacket, EndpointReady,
	EndpointGone, ServiceProgramming, Rollout}

// PartOf returns the prefix of metrics of a kind of probes.
func PartOf(k probe.Kind) string { return parts[k] }

var parts = map[probe.Kind]string{probe.UDP: metric.UDPProbes, probe.TCP: metric.TCPProbes,
	probe.TCPNew: metric.NewProbes}
