//go:build linux

package lab_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/cgroup"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// bulkArg as the first argument makes the test binary an end of a bulk transfer. The next ones are serve or fetch, and
// an address.
const bulkArg = "bulk"

// bulkSize is larger than all buffers and windows of a path together, in bytes.
const bulkSize = 24 << 20

// bulkSeeds are the seeds of what the client sends and of what it receives.
var bulkSeeds = [2]byte{1, 2}

func stream(seed byte) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{seed}), bulkSize)
}

func digest(r io.Reader) ([]byte, int64, error) {
	h := sha256.New()
	n, err := io.Copy(h, r)
	return h.Sum(nil), n, err
}

// runBulk sends its stream and reads the other end's at the same time, and compares what it received with what was
// sent.
func runBulk(args []string) error {
	mine, theirs := bulkSeeds[0], bulkSeeds[1]
	var conn net.Conn
	var err error
	switch args[0] {
	case "serve":
		mine, theirs = theirs, mine
		l, listenErr := net.Listen("tcp", args[1])
		if listenErr != nil {
			return listenErr
		}
		fmt.Println("listening")
		conn, err = l.Accept()
	case "fetch":
		conn, err = net.DialTimeout("tcp", args[1], 5*time.Second)
	}
	if err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Now().Add(60 * time.Second)); err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() {
		_, err := io.CopyBuffer(struct{ io.Writer }{conn}, stream(mine), make([]byte, 128<<10))
		sent <- errors.Join(err, conn.(*net.TCPConn).CloseWrite())
	}()
	got, n, err := digest(conn)
	want, _, _ := digest(stream(theirs))
	if err := errors.Join(err, <-sent); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("received %d bytes that are not the %d that were sent", n, bulkSize)
	}
	return nil
}

// transfer runs a bulk transfer in both directions between the ends of a site.
func transfer(t *testing.T, l *lab.Lab, site singleSite) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	listening, stdout := io.Pipe()
	served := make(chan error, 1)
	go func() {
		serve := host.Cmd{Args: []string{"/proc/self/exe", bulkArg, "serve", site.Listen.String()}, Stdout: stdout}
		err := l.Run(ctx, site.ID, site.Server.Name, serve)
		served <- errors.Join(err, stdout.Close())
	}()
	const ready = "listening\n"
	if line, err := io.ReadAll(io.LimitReader(listening, int64(len(ready)))); err != nil || string(line) != ready {
		t.Fatalf("the server says %q, %v", line, errors.Join(err, <-served))
	}
	fetch := host.Cmd{Args: []string{"/proc/self/exe", bulkArg, "fetch", site.Dial.String()}}
	if err := l.Run(ctx, site.ID, site.Client.Name, fetch); err != nil {
		t.Error(err)
		cancel()
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestBulkTransfers(t *testing.T) {
	for _, d := range datapath.Kit.Datapaths {
		for _, services := range []string{"nftables", "ebpf"} {
			t.Run(d.Name()+"/"+services, func(t *testing.T) {
				t.Parallel()
				topology := lab.Default()
				topology.Services = services
				checkBulk(t, d, topology)
			})
		}
	}
}

func checkBulk(t *testing.T, d lab.Datapath, topology lab.Topology) {
	l := startLab(t, config())
	paths := []result.Path{result.PodSvcOther, result.PodPodOther, result.NodeNode}
	path := paths[slices.IndexFunc(paths, func(p result.Path) bool { return d.Carries(topology, p) == nil })]
	err := l.Probe(d.Name(), topology, path)
	if errors.Is(err, result.ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	site, err := openOne(context.Background(), l, d.Name(), topology, targets.Placement{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	transfer(t, l, site)
	if err := l.CloseSite(site.ID); err != nil {
		t.Error(err)
	}
}

// TestConnectionsLeftOverALossyLink checks that a site is removed even if its processes were killed during a transfer.
// The link loses the last segments of a connection, and the namespace of one end is removed before the other end learns
// of it.
func TestConnectionsLeftOverALossyLink(t *testing.T) {
	l := startLab(t, config())
	topology := lab.Default()
	topology.Loss = 0.05
	closed := 0
	for range 20 {
		site, err := openOne(t.Context(), l, "host", topology, targets.Placement{Path: result.NodeNode})
		if err != nil {
			t.Log(err) // one time in a hundred the link also loses too many packets of the datapath check
			continue
		}
		killTransfer(t, l, site)
		if err := l.CloseSite(site.ID); err != nil {
			t.Fatal(err)
		}
		closed++
	}
	if closed < 10 {
		t.Errorf("only %d sites of 20 could be opened", closed)
	}
}

// killTransfer kills both ends of a transfer in progress.
func killTransfer(t *testing.T, l *lab.Lab, site singleSite) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	listening, stdout := io.Pipe()
	ended := make(chan error, 2)
	go func() {
		serve := host.Cmd{Args: []string{"/proc/self/exe", bulkArg, "serve", site.Listen.String()}, Stdout: stdout}
		err := l.Run(ctx, site.ID, site.Server.Name, serve)
		ended <- errors.Join(err, stdout.Close())
	}()
	if _, err := io.ReadFull(listening, make([]byte, len("listening\n"))); err != nil {
		cancel()
		t.Fatal(errors.Join(err, <-ended))
	}
	go func() {
		fetch := host.Cmd{Args: []string{"/proc/self/exe", bulkArg, "fetch", site.Dial.String()}}
		ended <- l.Run(ctx, site.ID, site.Client.Name, fetch)
	}()
	time.Sleep(100 * time.Millisecond) // usually connected, and far from complete
	cancel()
	<-ended
	<-ended
}

// TestServicesAtConnect checks that the paths to Services work with services=ebpf, and that another path is not
// affected.
func TestServicesAtConnect(t *testing.T) {
	servicesAtConnect(t, result.PodPodOther, result.NodeSvcSame,
		result.NodeSvcOther, result.PodSvcSame, result.PodSvcOther)
}

func TestStressServicesAtConnect(t *testing.T) { servicesAtConnect(t, result.Paths()...) }

func servicesAtConnect(t *testing.T, paths ...result.Path) {
	t.Cleanup(func() { checkNoGroups(t) }) // after the parallel subtests
	for _, d := range datapath.Kit.Datapaths {
		for _, ipv6 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/ipv6=%t", d.Name(), ipv6), func(t *testing.T) {
				t.Parallel()
				topology := lab.Default()
				topology.Services, topology.IPv6 = "ebpf", ipv6
				checkPaths(t, startLab(t, config()), d, topology, paths...)
			})
		}
	}
}

// checkNoGroups fails the test if control groups of sites are left that no process holds. Groups of a program that
// another test has just killed disappear soon.
func checkNoGroups(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(leftoverTimeout); ; time.Sleep(10 * time.Millisecond) {
		var left []string
		_, err := cgroup.Clean(func(dir string) bool {
			left = append(left, dir)
			return false
		}, func(string) {})
		if err == nil && len(left) == 0 {
			return
		}
		if err != nil || time.Now().After(end) {
			t.Errorf("control groups are left: %v, %v", left, err)
			return
		}
	}
}

func TestServicesAtConnectNeedRoot(t *testing.T) {
	c := config()
	c.UserNamespace = true
	topology := lab.Default()
	topology.Services = "ebpf"
	err := startLab(t, c).Probe("native", topology, result.PodSvcOther)
	if !errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(), "root") {
		t.Errorf("in a user namespace: %v", err)
	}
}

// TestTwoSitesAtConnect checks that two sites that are open at once have control groups of their own, and that a
// command of one is not in the other's group.
func TestTwoSitesAtConnect(t *testing.T) {
	topology := lab.Default()
	topology.Services = "ebpf"
	l := startLab(t, config())
	if err := l.Probe("native", topology, result.PodSvcOther); errors.Is(err, result.ErrNotSupported) {
		t.Skip(err)
	}
	var seen []string
	var sites []int
	for range 2 {
		site, err := openOne(context.Background(), l, "native", topology, targets.Placement{Path: result.PodSvcOther})
		if err != nil {
			t.Fatal(err)
		}
		sites = append(sites, site.ID)
		var out bytes.Buffer
		which := host.Cmd{Args: []string{"cat", "/proc/self/cgroup"}, Stdout: &out}
		if err := l.Run(t.Context(), site.ID, site.Client.Name, which); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if group, ok := strings.CutPrefix(line, "0::"); ok {
				seen = append(seen, strings.TrimSpace(group))
			}
		}
	}
	foreign := func(group string) bool { return !strings.Contains(group, cgroup.Prefix) }
	if len(seen) != 2 || seen[0] == seen[1] || slices.ContainsFunc(seen, foreign) {
		t.Errorf("the commands of two sites were in the groups %q", seen)
	}
	for _, id := range sites {
		if err := l.CloseSite(id); err != nil {
			t.Error(err)
		}
	}
	for _, s := range seen {
		if _, err := os.Stat("/sys/fs/cgroup/unified" + s); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", s, err)
		}
	}
}
