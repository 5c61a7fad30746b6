package counter

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/metric"
)

// A source is a file of the kernel's. One that this kernel has not got counts nothing.
type source struct {
	path  string
	parse func(io.Reader, map[string]float64) error
}

// proc is where a thread sees its own network namespace.
const proc = "/proc/thread-self/net/"

var (
	ofNamespace = []source{
		{proc + "snmp", parsePairs}, {proc + "netstat", parsePairs}, {proc + "snmp6", parseLines},
		{proc + "dev", parseDevices}, {proc + "stat/nf_conntrack", parseConntrack},
	}
	ofMachine = []source{{proc + "softnet_stat", parseSoftnet}, {"/proc/pressure/cpu", parsePressure}}
)

// See reads the counters of the calling thread's network namespace, of the node's that the environment names, and of
// the machine. The caller's goroutine is locked to its thread and ends with it.
func See() (Look, error) {
	var l Look
	var err error
	if l.Machine, err = read(ofMachine); err != nil {
		return l, err
	}
	if l.Own, err = namespace(); err != nil {
		return l, err
	}
	path := os.Getenv(Node)
	if path == Ancestor {
		if path, err = ancestor(); err != nil {
			return l, err
		}
	}
	if path == "" {
		return l, nil
	}
	l.Node, err = within(path, namespace)
	return l, err
}

// ancestor is the path of the network namespace of the nearest ancestor that has another one; empty if none has.
func ancestor() (string, error) {
	own, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		return "", fmt.Errorf("find the network namespace: %w", err)
	}
	for pid := os.Getppid(); pid > 0; {
		path := fmt.Sprintf("/proc/%d/ns/net", pid)
		theirs, err := os.Readlink(path)
		if err != nil {
			return "", fmt.Errorf("find the node's network namespace: %w", err)
		}
		if theirs != own {
			return path, nil
		}
		if pid, err = parent(pid); err != nil {
			return "", fmt.Errorf("find the node's network namespace: %w", err)
		}
	}
	return "", nil
}

// parent is the process that a process is a child of, 0 if it is nobody's that can be seen.
func parent(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name in parentheses may have any character; what follows the last one is the state, and then the parent.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/%d/stat: %w", pid, errText)
	}
	return strconv.Atoi(fields[1])
}

// within reads in another network namespace, and comes back.
func within(path string, f func() (map[string]float64, error)) (map[string]float64, error) {
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("find the network namespace: %w", err)
	}
	defer own.Close()
	other, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("find the node's network namespace: %w", err)
	}
	defer other.Close()
	if err := unix.Setns(int(other.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("enter the node's network namespace: %w", err)
	}
	counted, err := f()
	if back := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); back != nil {
		runtime.LockOSThread() // once more than the caller unlocks: nothing else may run on this thread
		err = errors.Join(err, fmt.Errorf("leave the node's network namespace: %w", back))
	}
	return counted, err
}

// namespace reads what belongs to the thread's network namespace.
func namespace() (map[string]float64, error) {
	counted, err := read(ofNamespace)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(queues(counted), drivers(counted)); err != nil {
		return nil, err
	}
	return counted, conntrack(counted)
}

func read(sources []source) (map[string]float64, error) {
	counted := map[string]float64{}
	for _, s := range sources {
		file, err := os.Open(s.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the kernel's counters: %w", err)
		}
		err = errors.Join(s.parse(file, counted), file.Close())
		if err := unavailable(err); err != nil {
			return nil, fmt.Errorf("%s: %w", s.path, err)
		}
	}
	return counted, nil
}

// unavailable leaves out the error of a file that is there and of a feature that is switched off.
func unavailable(err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// queues adds what queueing disciplines dropped, and how often they held packets back to keep a rate.
func queues(counted map[string]float64) error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("ask for queueing disciplines: %w", err)
	}
	defer h.Close()
	disciplines, err := h.QdiscList(nil)
	if err != nil {
		return fmt.Errorf("ask for queueing disciplines: %w", err)
	}
	for _, d := range disciplines {
		s := d.Attrs().Statistics
		if d.Attrs().Parent != netlink.HANDLE_ROOT || s == nil || s.Queue == nil {
			continue
		}
		counted[metric.QueueDrops] += float64(s.Queue.Drops)
		counted[metric.QueueOverlimits] += float64(s.Queue.Overlimits)
	}
	return nil
}

// conntrack adds how full the table of connections is.
func conntrack(counted map[string]float64) error {
	var values [2]float64
	for i, name := range []string{"count", "max"} {
		text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_" + name)
		if err != nil {
			return nil // connections are not tracked here
		}
		n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			return fmt.Errorf("%w: nf_conntrack_%s is %q", errText, name, text)
		}
		values[i] = float64(n)
	}
	if values[1] > 0 {
		counted[metric.ConntrackUsed] = values[0] / values[1]
	}
	return nil
}
