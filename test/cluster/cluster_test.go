//go:build linux

package main

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	s, rest, err := parse(strings.Fields(
		"-id 2 -network flannel-vxlan -nodes 3 -ip 46 -zones a,b -rates 1gbit,950mbit more"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Dir != "/var/lib/knotmeter-cluster-2" || !s.IPv6 || s.Nodes != 3 ||
		s.Network != "flannel-vxlan" || len(s.Zones) != 2 || len(s.Rates) != 2 || !slices.Equal(rest, []string{"more"}) {
		t.Errorf("%+v %q", s, rest)
	}
	for flags, want := range map[string]string{
		"-id 10": "-id: 10", "-id -1": "-id: -1", "-network x": `"x" is not one of`,
		"-nodes 0": "from 1 to 9", "-nodes 10": "from 1 to 9",
		"-ip 6": "neither 4 nor 46", "-ip 46 -network macvlan": "IPv4 only", "-network macvlan -multus": "already",
		"-network calico-ipip": "fork of BIRD", "-network calico-vxlan -firewall": "enforces NetworkPolicies itself",
	} {
		if _, _, err := parse(strings.Fields(flags)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %s", flags, err, want)
		}
	}
}

// TestNothingShared checks that parallel clusters share no name and no address on this machine, and the networks of a
// cluster do not overlap.
func TestNothingShared(t *testing.T) {
	seen := map[string]int{}
	for id := range maxID + 1 {
		s := spec{ID: id, Nodes: maxNodes, IPv6: true, Dir: defaultDir(id)}
		for _, name := range []string{s.Dir, s.uplink(), s.cgroup(), s.context(), s.host(), s.control()} {
			if other, taken := seen[name]; taken {
				t.Errorf("clusters %d and %d share %s", other, id, name)
			}
			seen[name] = id
		}
		if len(s.uplink()) > 15 {
			t.Errorf("%s is too long for a link", s.uplink())
		}
		var whole []netip.Prefix
		for _, text := range strings.Split(s.pods()+","+s.services()+","+s.control()+"/24,"+s.control6()+"/64", ",") {
			p := netip.MustParsePrefix(text).Masked()
			for _, other := range whole {
				if p.Overlaps(other) {
					t.Errorf("cluster %d: %s overlaps %s", id, p, other)
				}
			}
			whole = append(whole, p)
		}
		for _, n := range s.nodes() {
			if !whole[0].Contains(netip.MustParsePrefix(n.Pods).Addr()) ||
				!whole[1].Contains(netip.MustParsePrefix(n.Pods6).Addr()) {
				t.Errorf("cluster %d: %s or %s is not in the pods' network", id, n.Pods, n.Pods6)
			}
		}
	}
}

func TestSaved(t *testing.T) {
	s := specOf("native", true)
	s.Dir = t.TempDir()
	if got, err := s.saved(); err != nil || got.ID != s.ID {
		t.Errorf("without a file: %+v %v", got, err)
	}
	if err := s.save(); err != nil {
		t.Fatal(err)
	}
	got, err := spec{Dir: s.Dir}.saved()
	if err != nil || got.Network != s.Network || got.Nodes != s.Nodes || !got.IPv6 || !slices.Equal(got.Zones, s.Zones) {
		t.Errorf("%+v %v", got, err)
	}
	if err := os.WriteFile(s.file("spec.json"), []byte("no"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.saved(); err == nil {
		t.Error("no error of a file that is no JSON")
	}
}

func TestHeldDir(t *testing.T) {
	line := "/proc/self/exe\x00init\x00-id\x001\x00-dir\x00/a b\x00"
	if dir, found := heldDir(line, 1); !found || dir != "/a b" {
		t.Errorf("%q %v", dir, found)
	}
	for _, other := range []string{strings.Replace(line, "init", "hold", 1), "vi\x00init -id 1 -dir /a\x00", ""} {
		if dir, found := heldDir(other, 1); found {
			t.Errorf("%q is taken for the holder of %q", other, dir)
		}
	}
	if _, found := heldDir(line, 0); found {
		t.Error("of another cluster")
	}
}

func TestReadySince(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 999, time.UTC)
	for text, want := range map[string]bool{
		"True 2026-01-02T03:04:05Z ":                             true,
		"True 2026-01-02T03:04:04Z":                              false,
		"False 2026-01-02T03:04:06Z":                             false,
		"True 2026-01-02T03:04:06Z node.kubernetes.io/not-ready": false,
		"True now": false,
		"":         false,
	} {
		if err := readySince(text, since); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestPart(t *testing.T) {
	s := specOf("flannel-vxlan", false)
	for name, want := range map[string][]string{
		"etcd": {"etcd"}, "kube-apiserver": {"kube-apiserver"}, "node-2-kubelet": {"node-2-kubelet"}, "node-3-link": nil,
		"node-1": {"node-1-containerd", "node-1-flannel", "node-1-kubelet", "node-1-kube-proxy"},
	} {
		p, err := s.part(name)
		if err != nil {
			t.Error(err)
		}
		var got []string
		for _, process := range p.processes {
			got = append(got, process.name)
		}
		if !slices.Equal(got, want) || (p.node != nil) != (name == "node-1") ||
			(p.link == "node-3") != (name == "node-3-link") {
			t.Errorf("%s: %q, node %v, link %q", name, got, p.node, p.link)
		}
	}
	if _, err := s.part("node-4"); err == nil || !strings.Contains(err.Error(), "node-3-link") {
		t.Errorf("%v does not say what there is", err)
	}
}

// TestOrders checks that orders over the socket return their outcome, or an error if no cluster runs.
func TestOrders(t *testing.T) {
	s := specOf("native", false)
	s.Dir = t.TempDir()
	if err := ask(s, "stop", []string{"etcd"}); err == nil || !strings.Contains(err.Error(), "no cluster is ready") {
		t.Error(err)
	}
	p := newParts(s)
	if err := p.listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ask(s, "stop", []string{"etcd"}); err != nil { // it does not run, which is no error
		t.Error(err)
	}
	if err := ask(s, "stop", []string{"nothing"}); err == nil || !strings.Contains(err.Error(), `no part "nothing"`) {
		t.Error(err)
	}
	err := ask(s, "network", []string{"nothing"})
	if err == nil || !strings.Contains(err.Error(), `"nothing" is not one`) {
		t.Error(err)
	}
	if err := ask(s, "stop", nil); err == nil {
		t.Error("no error of no part")
	}
}

// TestProcesses checks that a stopped process does not end the cluster; one that ends by itself does, and the error
// contains the end of its log.
func TestProcesses(t *testing.T) {
	s := specOf("native", false)
	s.Dir = t.TempDir()
	p := newParts(s)
	if err := p.start(t.Context(), process{name: "sleeper", args: command{"sleep", "100"}}); err != nil {
		t.Fatal(err)
	}
	if !p.isRunning("sleeper") {
		t.Error("it does not run")
	}
	if err := p.kill([]string{"sleeper", "unknown"}); err != nil {
		t.Fatal(err)
	}
	if p.isRunning("sleeper") {
		t.Error("it runs still")
	}
	select {
	case err := <-p.ended:
		t.Errorf("the cluster ended: %v", err)
	default:
	}
	never := process{name: "never", args: command{"sleep", "0.1"}, ready: func(ctx context.Context) error {
		return await(ctx, "the sleeper", time.Hour, func() error { return errors.New("asleep") })
	}}
	if err := p.start(t.Context(), never); !errors.Is(err, errEnded) {
		t.Errorf("one that ended before it was ready: %v", err)
	}
	<-p.ended
	failing := process{name: "failing", args: command{"sh", "-c", "echo no disk; exit 3"}}
	if err := p.start(t.Context(), failing); err != nil {
		t.Fatal(err)
	}
	if err := <-p.ended; !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no disk") {
		t.Error(err)
	}
}

func TestParseLease(t *testing.T) {
	l, err := parseLease("FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\n" +
		"FLANNEL_IPV6_NETWORK=fd00::/56\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n")
	if want := (lease{"10.244.0.0/16", "fd00::/56", 1450, true}); err != nil || l != want {
		t.Errorf("%+v %v", l, err)
	}
	for _, text := range []string{"", "FLANNEL_NETWORK=1\n", "FLANNEL_MTU=x",
		"FLANNEL_NETWORK=1\nFLANNEL_MTU=1\nFLANNEL_IPMASQ=perhaps"} {
		if l, err := parseLease(text); err == nil {
			t.Errorf("%q is %+v", text, l)
		}
	}
}

func TestLoops(t *testing.T) {
	list, err := parseLoops("/dev/loop1 17 /state/volumes/a.img\n/dev/loop4 95 /\n" +
		"/dev/loop5 96 /loop7\n/dev/loop6 18 /state-1/b.img\n" +
		"/dev/loop7 19 /state/c\\x20d.img (deleted)\n/dev/loop8 95 /home/x/y\n/dev/loop9\n")
	if err != nil {
		t.Fatal(err)
	}
	inodes := map[string]uint64{"/dev/loop1": 95, "/dev/loop7": 96, "/dev/loop6": 97}
	var got []string
	for _, l := range below("/state", list, func(device string) uint64 { return inodes[device] }) {
		got = append(got, l.device+" "+l.file)
	}
	want := []string{"/dev/loop4 /", "/dev/loop1 /state/volumes/a.img", "/dev/loop5 /loop7", "/dev/loop7 /state/c d.img"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if _, err := parseLoops("/dev/loop1 x /a"); err == nil {
		t.Error("no error of an inode that is none")
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "512": 512, "50M": 50e6, "1Gi": 1 << 30, "3K": 3000, "2Ki": 2048} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("%s: %d %v", text, got, err)
		}
	}
	for _, text := range []string{"", "M", "-1", "1i", "1MM", "1T", "1.5M", "9223372036854775807G"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

// TestLimits checks that a limit is written to each cgroup once, also to later ones, and removed when the device
// becomes another volume.
func TestLimits(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"node-1/pod", "node-2"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l := &limits{root: root, rules: map[string]rule{}}
	r := rule{number: "7:99", file: "/gone.img", iops: 500, bps: 50e6, done: map[string]bool{}}
	if err := l.apply(r); err != nil {
		t.Fatal(err)
	}
	written := func(dir, file string) string {
		text, _ := os.ReadFile(filepath.Join(root, dir, "blkio.throttle."+file))
		return string(text)
	}
	if got := written("node-1/pod", "read_iops_device"); got != "7:99 500" {
		t.Error(got)
	}
	if got := written("node-2", "write_bps_device"); got != "7:99 50000000" {
		t.Error(got)
	}
	if err := os.Mkdir(filepath.Join(root, "later"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := l.apply(r); err != nil {
		t.Fatal(err)
	}
	if got := written("later", "write_iops_device"); got != "7:99 500" {
		t.Error(got)
	}
	l.rules["/dev/loop-that-is-not"] = r
	l.reapply()
	if got := written("later", "write_iops_device"); got != "7:99 0" || len(l.rules) != 0 {
		t.Errorf("%q, %v", got, l.rules)
	}
	if err := l.set("/dev/loop-that-is-not 1 1"); err == nil {
		t.Error("no error of a device that is not there")
	}
	if err := l.set("nonsense"); err == nil {
		t.Error("no error of nonsense")
	}
}

func TestStamp(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		stamp, err := program{name: "x", module: ".", source: "."}.stamp(dir)
		if err != nil {
			t.Fatal(err)
		}
		return stamp
	}
	if a, b := write("package a"), write("package b"); a == b {
		t.Error("other sources have the same stamp")
	}
	if write("package a") != write("package a") {
		t.Error("the same source has other stamps")
	}
}

// TestWriteImage checks that the image of the pause container has the three files that `docker save` writes.
func TestWriteImage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.tar")
	if err := writeImage(file, "x:1", []string{"/run"}, map[string][]byte{"run": []byte("program")}); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	names := map[string]bool{}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names[h.Name] = true
	}
	if got := slices.Sorted(maps.Keys(names)); !slices.Equal(got, []string{"config.json", "layer.tar", "manifest.json"}) {
		t.Error(got)
	}
}

func FuzzParsers(f *testing.F) {
	for _, seed := range []string{"", "FLANNEL_MTU=1450\nFLANNEL_NETWORK=x", "/dev/loop1 17 /a b",
		"50M", "True 2026-01-02T03:04:05Z", "a\x00init\x00-id\x000\x00-dir\x00/x\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if l, err := parseLease(text); err == nil && (l.Network == "" || l.MTU == 0) {
			t.Errorf("%+v has no error", l)
		}
		if n, err := parseSize(text); err == nil && n < 0 {
			t.Errorf("%q is %d", text, n)
		}
		_, _ = parseLoops(text)
		_ = readySince(text, time.Time{})
		if dir, found := heldDir(text, 0); found && strings.Contains(dir, "\x00") {
			t.Errorf("%q", dir)
		}
	})
}

// TestBuildAtTheSameTime checks that clusters that start at the same time share one cache.
func TestBuildAtTheSameTime(t *testing.T) {
	s := spec{Bin: filepath.Join(t.TempDir(), "cache")}
	if err := os.Mkdir(s.Bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range s.programs() {
		stamp, err := p.stamp(sourceDir())
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{p.name: "a program", p.name + ".from": stamp, p.name + ".tar": "an image"} {
			if err := os.WriteFile(s.program(name), []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	const clusters = 16
	built := make(chan error, clusters)
	for range clusters {
		go func() { built <- build(t.Context(), s, s.programs()...) }()
	}
	for range clusters {
		if err := <-built; err != nil {
			t.Error(err)
		}
	}
}

// TestLockInterrupted checks that a command that waits for the cache can be interrupted.
func TestLockInterrupted(t *testing.T) {
	s := spec{Bin: t.TempDir()}
	unlock, err := s.lockCache(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.lockCache(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a second time: %v", err)
	}
	unlock()
	if unlock, err = s.lockCache(t.Context()); err != nil {
		t.Fatal(err)
	}
	unlock()
}

// TestOfOthers checks that the machine's state includes a cluster's own objects and those without a cluster's name.
func TestOfOthers(t *testing.T) {
	for line, others := range map[string]bool{
		"link 9: knotmeter-c-3@if2": false, "link 9: knotmeter-c@if2": true, "link 9: knotmeter-c-4@if2": true,
		"route 10.199.3.0/24 dev knotmeter-c-3": false, "route 10.199.13.0/24 dev x": false,
		"route 10.199.0.0/24 dev y":                 true,
		"cgroup /sys/fs/cgroup/pids/test-cluster-3": false, "cgroup /sys/fs/cgroup/pids/test-cluster": true,
		"mount tmpfs /var/lib/knotmeter-cluster-5/x": true, "BPF program 17": false,
	} {
		if got := (spec{ID: 3}).ofOtherCluster(line); got != others {
			t.Errorf("%s: %t", line, got)
		}
	}
	if (spec{}).ofOtherCluster("link 9: knotmeter-c@if2") || !(spec{}).ofOtherCluster("link 9: knotmeter-c-1@if2") {
		t.Error("the first cluster has no number in its names")
	}
}

// TestLeft checks that what was there before is not reported as left, and that what was added since is, by name.
func TestLeft(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	s := spec{ID: 3}
	if err := checkLeft(t.Context(), s, []string{file}); err != nil {
		t.Fatal(err)
	}
	if err := checkLeft(t.Context(), s, []string{file}); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(text), "\n")
	if err := os.WriteFile(file, []byte(rest), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := checkLeft(ctx, s, []string{file}); err == nil || !strings.Contains(err.Error(), first) {
		t.Errorf("%v does not name %q", err, first)
	}
}
