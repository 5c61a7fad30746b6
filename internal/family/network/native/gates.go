package native

import (
	"fmt"
	"math"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// gates makes the run invalid for each reason why it must not count.
func (m *builder) gates(latency, late *netload.Histogram) {
	for _, r := range []netload.Report{m.Client, m.Server} {
		if r.Failure != "" && m.Spec.Kind != netload.TCPCRR {
			m.Refuse(result.AgentFailed, "the %s's agent failed: %s", r.Role, r.Failure)
		}
		if c := r.Cost.Window; c < r.Window*shortWindow || c > r.Window/shortWindow {
			m.Refuse(result.ShortWindow, "the %s could not watch its window: the looks at the counters were %.3f s apart, not "+
				"%.3f s", r.Role, c, r.Window)
		}
		if r.Cost.Throttled > 0 && m.CPULimit != "" {
			m.Warn(result.Throttled, "the %s's CPU was throttled %d times by its limit of %s, which was asked for",
				r.Role, r.Cost.Throttled, m.CPULimit)
		} else if r.Cost.Throttled > 0 {
			m.Refuse(result.Throttled, "the %s's CPU was throttled by its cgroup %d times", r.Role, r.Cost.Throttled)
		}
	}
	if why := m.behind(latency, late); why != "" && m.Spec.OpenLoop() {
		m.Refuse(result.GeneratorLate, "the generator was late: %s", why)
	}
	if m.Spec.Kind.Stream() && m.received() == 0 {
		m.Refuse(result.NothingDone, "nothing was received in the window")
	}
	if !m.Spec.Kind.Stream() && m.Spec.Kind != netload.Unloaded {
		m.checkFailures(uint64(latency.Count()))
	}
	if s := m.Client.Sweep; s != nil && m.loss() > m.Spec.Loss {
		m.Refuse(result.NoRate, "no rate that was tried kept the loss at or below %s; the last window, at %.0f datagrams "+
			"per second, lost %s", unit.Format(m.Spec.Loss, unit.Ratio), s.Rate, unit.Format(m.loss(), unit.Ratio))
	}
	m.counters()
}

// checkFailures checks the number of failed requests in the window; all is the number of requests.
func (m *builder) checkFailures(all uint64) {
	switch failed := m.failed(); {
	case m.Client.Operations.Window == 0:
		m.Refuse(result.NothingDone, "no operation was completed in the window%s", failureSuffix(m.Client.Failure))
	case netload.TooManyFailed(failed, all):
		m.Refuse(result.TooManyFailed, "%s%s", netload.Failures(failed, all), m.hint())
	case m.Client.Unfinished > 0 && !m.Spec.OpenLoop():
		// A closed loop sends nothing while it waits, so the number of requests that this one stands for is unknown.
		m.Refuse(result.FlowsStuck, "%d of %d flows had no answer any more when the window ended",
			m.Client.Unfinished, m.Spec.Flows)
	case failed > 0:
		m.Warn(result.SomeFailed, "%s%s: they count as no faster than the slowest answer",
			netload.Failures(failed, all), m.hint())
	}
}

// hint returns what is known about the cause of failed requests.
func (m *builder) hint() string {
	if m.Client.Failure != "" {
		return ", the first with " + m.Client.Failure + portHint(m.Client.Failure)
	}
	if m.Spec.OpenLoop() && m.Client.Unfinished > 0 {
		return fmt.Sprintf(", of them %d for which there was no time: lower the rate", m.Client.Unfinished)
	}
	return ""
}

func failureSuffix(failure string) string {
	if failure == "" {
		return ""
	}
	return ": " + failure
}

// counters compares the counts of both sides over the whole run.
func (m *builder) counters() {
	c, s := m.Client, m.Server
	switch m.Spec.Kind {
	case netload.TCPStream, netload.TCPRRLoaded:
		m.checkCounts("client", c.Sent.Total(), s.Received.Total(), s.ReceivedAll)
		m.checkCounts("server", s.Sent.Total(), c.Received.Total(), c.ReceivedAll)
	case netload.UDPStream, netload.UDPUnpaced:
		m.checkCounts("client", c.Sent.Total(), s.Received.Total()-min(s.Duplicate, s.Received.Total()), false)
		m.checkCounts("server", s.Sent.Total(), c.Received.Total()-min(c.Duplicate, c.Received.Total()), false)
	}
	if m.Spec.Kind.Stream() || m.Spec.Kind == netload.Ping { // the server does not count answers of its kernel
		return
	}
	done, answered := float64(c.Operations.Total()), float64(s.Answered)
	// Requests whose answer was lost on the way back count as answered.
	slack := float64(m.Spec.Flows) + float64(c.Lost+c.Stale+c.Unfinished) + countersApart*done
	if math.Abs(done-answered) > slack {
		m.Refuse(result.CountersDisagree, "the counters disagree: the client had %.0f answers, the server gave %.0f",
			done, answered)
	}
}

// checkCounts compares what one side sent with what the other received; all means that it received everything.
func (m *builder) checkCounts(sender string, sent, received uint64, all bool) {
	if received > sent || all && received != sent {
		m.Refuse(result.CountersDisagree, "the counters disagree: the %s sent %d, the other side received %d",
			sender, sent, received)
	}
}

// warnings adds what a reader should know about a valid run.
func (m *builder) warnings() {
	for _, r := range []netload.Report{m.Client, m.Server} {
		if stolen := r.Cost.Machine.Share(machine.Steal); stolen > stealAtMost && !(m.Shared && r.Role == netload.Server) {
			m.Warn(result.CPUStolen, "the hypervisor took %.1f %% of the %s's machine away", stolen*100, r.Role)
		}
		if r.Refused > 0 {
			m.Warn(result.ForeignTraffic, "the %s refused %d connections or datagrams that were not this run's",
				r.Role, r.Refused)
		}
		if r.Blocked > 0 {
			m.Warn(result.NoBuffer, "the %s's kernel had no buffer for %d sends", r.Role, r.Blocked)
		}
	}
	if m.Spec.Kind == netload.UDPStream && m.Spec.Rate > 0 && m.unreached() {
		bits := 8 * float64(m.Spec.Size) / m.window()
		m.Warn(result.RateMissed, "%s", network.NotReached(m.sent()*bits, m.planned()*bits))
	}
	if m.Client.Version != m.Server.Version {
		m.Warn(result.VersionsDiffer, "the agents are of different versions: %s and %s", m.Client.Version, m.Server.Version)
	}
}

// portHint explains the error of a client without free ports.
func portHint(failure string) string {
	if strings.Contains(failure, "assign requested address") {
		return " (every port of net.ipv4.ip_local_port_range is in use or in TIME_WAIT)"
	}
	return ""
}
