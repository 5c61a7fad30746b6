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

// A source is a file with counters and its parser. A file that this kernel does not have adds nothing.
type source struct {
	path  string
	parse func(io.Reader, map[string]float64) error
}

// proc is the directory with the statistics of the calling thread's network namespace.
const proc = "/proc/thread-self/net/"

var (
	namespaceFiles = []source{
		{proc + "snmp", parsePairs}, {proc + "netstat", parsePairs}, {proc + "snmp6", parseLines},
		{proc + "dev", parseDevices}, {proc + "stat/nf_conntrack", parseConntrack},
	}
	machineFiles = []source{{proc + "softnet_stat", parseSoftnet}, {"/proc/pressure/cpu", parsePressure}}
)

// Read reads the counters of the calling thread's network namespace, of the node's namespace that the environment
// variable [Node] names, and of the machine. The caller must have locked its goroutine to its thread; a thread that
// cannot return to its own namespace stays locked and ends with the goroutine.
func Read() (Snapshot, error) {
	var l Snapshot
	var err error
	if l.Machine, err = readFiles(machineFiles); err != nil {
		return l, err
	}
	if l.Own, err = readNamespace(); err != nil {
		return l, err
	}
	path := os.Getenv(Node)
	if path == Ancestor {
		if path, err = ancestorNamespace(); err != nil {
			return l, err
		}
	}
	if path == "" {
		return l, nil
	}
	l.Node, err = readIn(path, readNamespace)
	return l, err
}

// ancestorNamespace returns the path of the network namespace of the nearest ancestor process whose namespace differs
// from the thread's, or "" if there is none.
func ancestorNamespace() (string, error) {
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
		if pid, err = parentOf(pid); err != nil {
			return "", fmt.Errorf("find the node's network namespace: %w", err)
		}
	}
	return "", nil
}

// parentOf returns the process ID of a process's parent, or 0 if the parent cannot be seen.
func parentOf(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The command name in parentheses may contain any character. The state and the parent follow the last parenthesis.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/%d/stat: %w", pid, errFormat)
	}
	return strconv.Atoi(fields[1])
}

// readIn runs read in another network namespace, and returns the thread to its own.
func readIn(path string, read func() (map[string]float64, error)) (map[string]float64, error) {
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
	counted, err := read()
	if back := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); back != nil {
		runtime.LockOSThread() // once more than the caller unlocks, so that nothing else runs on this thread
		err = errors.Join(err, fmt.Errorf("leave the node's network namespace: %w", back))
	}
	return counted, err
}

// readNamespace reads the counters of the thread's network namespace.
func readNamespace() (map[string]float64, error) {
	counted, err := readFiles(namespaceFiles)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(addQueues(counted), addDriverStatistics(counted)); err != nil {
		return nil, err
	}
	return counted, addConntrack(counted)
}

// readFiles adds up the counters of the sources.
func readFiles(sources []source) (map[string]float64, error) {
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
		if err := ignoreUnsupported(err); err != nil {
			return nil, fmt.Errorf("%s: %w", s.path, err)
		}
	}
	return counted, nil
}

// ignoreUnsupported returns nil for the error of reading a file that exists although its feature is switched off.
func ignoreUnsupported(err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// addQueues adds the packets that root queueing disciplines dropped, and how often they delayed packets to keep a rate.
func addQueues(counted map[string]float64) error {
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

// addConntrack adds the share of the connection tracking table that is in use, from 0 to 1.
func addConntrack(counted map[string]float64) error {
	var values [2]float64
	for i, name := range []string{"count", "max"} {
		text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_" + name)
		if err != nil {
			return nil // connections are not tracked here
		}
		n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			return fmt.Errorf("%w: nf_conntrack_%s is %q", errFormat, name, text)
		}
		values[i] = float64(n)
	}
	if values[1] > 0 {
		counted[metric.ConntrackUsed] = values[0] / values[1]
	}
	return nil
}
