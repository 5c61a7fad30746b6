package netload

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/counter"
	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// A snapshot holds the kernel's counters at one moment.
type snapshot struct {
	at        time.Time
	stat      machine.CPUStat
	usage     unix.Rusage
	throttled int64
	memory    float64         // bytes in use; 0: not known
	tcp       []*unix.TCPInfo // of the senders
	counters  counter.Snapshot
	uncounted error // why counters could not be read
}

// takeSnapshot reads the counters of the machine and the process, TCP_INFO of the senders, and if count is set the
// network counters.
func takeSnapshot(senders []*worker, count bool) (snapshot, error) {
	l := snapshot{at: time.Now(), throttled: machine.Throttled(), memory: usedMemory()}
	var err error
	if l.stat, err = machine.ReadCPUStat(); err != nil {
		return l, err
	}
	if err := unix.Getrusage(unix.RUSAGE_SELF, &l.usage); err != nil {
		return l, fmt.Errorf("read the agent's CPU time: %w", err)
	}
	for _, w := range senders {
		info, err := unix.GetsockoptTCPInfo(w.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return l, fmt.Errorf("read TCP_INFO: %w", err)
		}
		l.tcp = append(l.tcp, info)
	}
	if count {
		l.counters, l.uncounted = counter.Read()
	}
	return l, nil
}

// usedMemory returns the machine's memory in use, in bytes; 0 if it cannot be read.
func usedMemory() float64 {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer file.Close()
	return ParseMeminfo(file)
}

// IdleLevel watches the machine for d and returns how many CPUs were busy on average.
func IdleLevel(d time.Duration) (float64, error) {
	before, err := takeSnapshot(nil, false)
	if err != nil {
		return 0, err
	}
	time.Sleep(d)
	after, err := takeSnapshot(nil, false)
	if err != nil {
		return 0, err
	}
	c := Cost{Window: after.at.Sub(before.at).Seconds()}
	c.setTimes(before.stat, after.stat)
	return c.Machine.Busy() / c.Window, nil
}

// cost returns the resources used between two snapshots.
func cost(before, after snapshot) Cost {
	c := Cost{
		Window:      after.at.Sub(before.at).Seconds(),
		AgentUser:   seconds(after.usage.Utime) - seconds(before.usage.Utime),
		AgentSystem: seconds(after.usage.Stime) - seconds(before.usage.Stime),
		Voluntary:   after.usage.Nvcsw - before.usage.Nvcsw,
		Involuntary: after.usage.Nivcsw - before.usage.Nivcsw,
		Throttled:   after.throttled - before.throttled,
		Memory:      max(before.memory, after.memory),
	}
	c.setTimes(before.stat, after.stat)
	return c
}

// tcpReport summarizes the senders' TCP_INFO; nil if there are no TCP flows.
func tcpReport(before, after snapshot, senders []*worker) *TCP {
	if len(after.tcp) == 0 {
		return nil
	}
	t := &TCP{}
	var rtt, rttvar, cwnd, pmtu, mss, rwnd, sndbuf []float64
	window := after.at.Sub(before.at).Seconds()
	for i, a := range after.tcp {
		t.Retransmits += uint64(a.Total_retrans - before.tcp[i].Total_retrans)
		rtt = append(rtt, float64(a.Rtt)/1e6)
		rttvar = append(rttvar, float64(a.Rttvar)/1e6)
		cwnd = append(cwnd, float64(a.Snd_cwnd))
		pmtu = append(pmtu, float64(a.Pmtu))
		mss = append(mss, float64(a.Snd_mss))
		rwnd = append(rwnd, float64(a.Rwnd_limited-before.tcp[i].Rwnd_limited)/1e6/window)
		sndbuf = append(sndbuf, float64(a.Sndbuf_limited-before.tcp[i].Sndbuf_limited)/1e6/window)
	}
	t.RTT, t.RTTVar = stats.Median(rtt), stats.Median(rttvar)
	t.Cwnd, t.PMTU, t.MSS = stats.Median(cwnd), stats.Median(pmtu), stats.Median(mss)
	t.RwndLimited, t.SndLimited = stats.Median(rwnd), stats.Median(sndbuf)
	if name, err := unix.GetsockoptString(senders[0].fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION); err == nil {
		t.Congestion = strings.TrimRight(name, "\x00")
	}
	return t
}

// addCounters sets the kernel's counters from two snapshots.
func (r *Report) addCounters(before, after snapshot) {
	if err := errors.Join(before.uncounted, after.uncounted); err != nil {
		r.Uncounted = err.Error()
		return
	}
	r.Counters = after.counters.Since(before.counters)
	r.OfNode = after.counters.Node != nil
}

// tuneRuntime keeps the Go runtime from disturbing the workers: no garbage collection, and more processors than
// workers, which block theirs. The owner of the process must undo it after the run, not during it: stopping the world
// would wait for every worker that is in a raw system call.
func tuneRuntime(workers int) {
	runtime.GOMAXPROCS(max(workers+4, runtime.GOMAXPROCS(0)))
	debug.SetMemoryLimit(memoryLimit)
	debug.SetGCPercent(-1)
}
