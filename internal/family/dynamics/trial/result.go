package trial

import (
	"github.com/knotmeter/knotmeter/internal/load/probe"
)

// A Result holds the trials of a run.
type Result struct {
	Trials []Trial           `json:"trials"`
	Facts  map[string]string `json:"facts"`
}

// A Trial is one change and its effects. Times are ns since the request for the change was sent, on the prober's clock.
type Trial struct {
	// Announced is when the API server announced the change that the datapath waits for; 0: it did not.
	Announced int64 `json:"announced,omitempty"`
	// Shown is when each kind of probes showed the change. A missing kind had not shown it when the trial ended.
	Shown map[probe.Kind]int64 `json:"shown,omitempty"`
	// CanSend is when the first datagram of a starting pod arrived; 0: none did.
	CanSend int64 `json:"can_send,omitempty"`
	// Leaked reports that forbidden traffic passed; Leak is the time between its first and last packet, ns.
	Leaked bool  `json:"leaked,omitempty"`
	Leak   int64 `json:"leak,omitempty"`
	// Loss is the loss of the probes sent from the request until End.
	Loss map[probe.Kind]probe.Loss `json:"loss,omitempty"`
	End  int64                     `json:"end"`
	// Late is the 99th percentile of the prober's own lateness in the trial, ns; Interval is the time between probes, ns.
	Late     int64 `json:"late"`
	Interval int64 `json:"interval"`
	// Traces holds the probes around the change, in the first trial only. Begin is when the first probe of each was
	// planned.
	Traces []probe.Trace `json:"traces,omitempty"`
	Begin  int64         `json:"begin,omitempty"`
}

// How much of the traces around the request is kept.
const (
	keptBefore = 100_000_000   // ns
	keptAfter  = 6_000_000_000 // ns
)

// setLoss sets End, and the losses and lateness of the probes sent from request to end, both on the prober's clock.
func (t *Trial) setLoss(traces []probe.Trace, request, end int64) {
	t.End, t.Loss = end-request, map[probe.Kind]probe.Loss{}
	for _, trace := range traces {
		t.Loss[trace.Kind] = trace.Loss(request, end)
		t.Late, t.Interval = max(t.Late, trace.Lateness(request, end, 0.99)), trace.Interval
	}
}

// setTraces keeps the part of the traces around the request, up to end, with times relative to the request.
func (t *Trial) setTraces(traces []probe.Trace, request, end int64) {
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
			part.Sent = append(part.Sent, relative(request, sent))
			part.Answered = append(part.Answered, relative(request, trace.Answered[n]))
		}
		for _, at := range trace.Broken {
			part.Broken = append(part.Broken, at-request)
		}
		t.Traces = append(t.Traces, part)
	}
}

// relative returns the time from request to at in ns, negative if at is earlier; 0 if at is 0, which means never.
func relative(request, at int64) int64 {
	if at == 0 || at == request {
		return 0
	}
	return at - request
}
