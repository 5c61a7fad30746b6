package trial

import (
	"github.com/knotmeter/knotmeter/internal/load/probe"
)

// A Result is the trials of a run.
type Result struct {
	Trials []Trial           `json:"trials"`
	Facts  map[string]string `json:"facts"`
}

// A Trial is a change and what it did. Times are ns since the request for the change was sent, by the prober's clock.
type Trial struct {
	// Announced is when the API server told of what the datapath waits for; 0: it did not.
	Announced int64 `json:"announced,omitempty"`
	// Shown is when the change showed by a kind of probes; without a kind it had not when the trial ended.
	Shown map[probe.Kind]int64 `json:"shown,omitempty"`
	// CanSend is when the first datagram of a pod that starts came; 0: none did.
	CanSend int64 `json:"can_send,omitempty"`
	// Leaked says that something passed that was forbidden, for Leak ns.
	Leaked bool  `json:"leaked,omitempty"`
	Leak   int64 `json:"leak,omitempty"`
	// Loss is that of the probes which were sent from the request until the end of the trial.
	Loss map[probe.Kind]probe.Loss `json:"loss,omitempty"`
	End  int64                     `json:"end"`
	// Late is the 99th percentile of the prober's own lateness in the trial, ns; Interval the time between probes.
	Late     int64 `json:"late"`
	Interval int64 `json:"interval"`
	// Traces are those of the probes around the change; the first trial has them. Begin is when the first probe of each
	// was planned.
	Traces []probe.Trace `json:"traces,omitempty"`
	Begin  int64         `json:"begin,omitempty"`
}

// Around the request and what it did, as much of traces is kept.
const (
	keptBefore = 100_000_000   // ns
	keptAfter  = 6_000_000_000 // ns
)

// seen is what became of the probes of a change that was asked for at a time, until another.
func (t *Trial) seen(traces []probe.Trace, request, end int64) {
	t.End, t.Loss = end-request, map[probe.Kind]probe.Loss{}
	for _, trace := range traces {
		t.Loss[trace.Kind] = trace.Loss(request, end)
		t.Late, t.Interval = max(t.Late, trace.Lateness(request, end, 0.99)), trace.Interval
	}
}

// keep keeps the part of the traces around the request until the end of the trial, with times from the request on.
func (t *Trial) keep(traces []probe.Trace, request, end int64) {
	for _, trace := range traces {
		part := probe.Trace{Kind: trace.Kind, Interval: trace.Interval}
		for n, sent := range trace.Sent {
			planned := int64(trace.Number+n)*trace.Interval - request
			if planned < -keptBefore || planned >= min(keptAfter, end-request) {
				continue
			}
			if len(part.Sent) == 0 {
				t.Begin = planned
			}
			part.Sent = append(part.Sent, since0(request, sent))
			part.Answered = append(part.Answered, since0(request, trace.Answered[n]))
		}
		for _, at := range trace.Broken {
			part.Broken = append(part.Broken, at-request)
		}
		t.Traces = append(t.Traces, part)
	}
}

// since0 is a time after a request, ns, which may be before it; 0 if there is none.
func since0(request, at int64) int64 {
	if at == 0 || at == request {
		return 0
	}
	return at - request
}
