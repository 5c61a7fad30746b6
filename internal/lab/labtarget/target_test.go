//go:build linux

package labtarget

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/agent/program"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
	"github.com/knotmeter/knotmeter/internal/lab/mesh"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// First arguments that make the test binary another program.
const (
	holdArg  = "lab-holder"
	agentArg = "agent"
	// cookieArg makes the agent print the cookie of its namespace.
	cookieArg = "cookie"
)

func config() lab.Config {
	return lab.Config{Kit: datapath.Kit, Argv: []string{"/proc/self/exe", holdArg},
		Agent: []string{"/proc/self/exe", agentArg}}
}

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == holdArg:
		if err := lab.Hold(datapath.Kit); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case len(os.Args) > 1 && os.Args[1] == mesh.Command:
		if mesh.Serve(os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
	case len(os.Args) == 3 && os.Args[1] == agentArg && os.Args[2] == cookieArg:
		if printCookie() != nil {
			os.Exit(1)
		}
	case len(os.Args) == 2 && os.Args[1] == agentArg:
		verbs := program.Verbs()
		verbs[whoVerb] = identify()
		if agent.Serve(context.Background(), os.Stdin, os.Stdout, agent.Program{Verbs: verbs}) != nil {
			os.Exit(1)
		}
	case len(os.Args) > 1 && os.Args[1] == agentArg:
		fmt.Println("agent", strings.Join(os.Args[2:], " "))
	default:
		os.Exit(m.Run())
	}
}

func open(t *testing.T, text string) targets.Target {
	t.Helper()
	tg := newTarget(t, text)
	t.Cleanup(func() {
		if err := tg.Close(); err != nil {
			t.Error(err)
		}
	})
	return tg
}

func newTarget(t *testing.T, text string) targets.Target {
	t.Helper()
	spec, err := result.ParseSpec(text)
	if err != nil {
		t.Fatal(err)
	}
	tg, err := New(spec, config())
	if err != nil {
		t.Fatal(err)
	}
	return tg
}

func site(t *testing.T, tg targets.Target, p targets.Placement) targets.Single {
	t.Helper()
	s, err := targets.OpenOne(context.Background(), tg, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestRunCarriesInputOutputAndStatus(t *testing.T) {
	s := site(t, open(t, "lab:vxlan"), targets.Placement{Path: result.PodPodOther})
	ctx := context.Background()
	var out, errs bytes.Buffer
	err := s.Client.Run(ctx, host.Cmd{Args: []string{"sh", "-c", "cat; echo oops >&2; exit 3"},
		Stdin: strings.NewReader("hello"), Stdout: &out, Stderr: &errs})
	var exit *host.ExitError
	if !errors.As(err, &exit) || exit.Status != 3 || exit.Host != "node1/pod1" || exit.Stderr != "oops" {
		t.Errorf("got %#v, want exit status 3 of node1/pod1 with oops", err)
	}
	if out.String() != "hello" || errs.String() != "oops\n" {
		t.Errorf("got %q and %q", out.String(), errs.String())
	}
	if err := s.Client.Run(ctx, host.Cmd{Args: []string{"no-such-program"}}); !errors.Is(err, host.ErrNoCommand) {
		t.Errorf("got %v, want ErrNoCommand", err)
	}
	out.Reset()
	if err := s.Server.Run(ctx, host.Cmd{Args: []string{host.Agent, "a", "b"}, Stdout: &out}); err != nil ||
		out.String() != "agent a b\n" {
		t.Errorf("agent: %v, %q", err, out.String())
	}
}

// TestPodsAreSetUp checks that the pods' kernel has the settings of the options.
func TestPodsAreSetUp(t *testing.T) {
	s := site(t, open(t, "lab:native?pod-mtu=1300&offloads=off&congestion=reno&buffer=64KiB&backlog=7"),
		targets.Placement{Path: result.PodPodOther})
	var out bytes.Buffer
	const ask = "cd /proc/sys/net; cat ipv4/tcp_congestion_control ipv4/tcp_rmem ipv4/tcp_wmem core/somaxconn"
	if err := s.Client.Run(t.Context(), host.Cmd{Args: []string{"sh", "-c", ask}, Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	const want = "reno 4096 65536 65536 4096 65536 65536 7"
	if got := strings.Join(strings.Fields(out.String()), " "); got != want {
		t.Errorf("%q, not %q", got, want)
	}
	if mtu, off := result.FactOf(s.Facts, "path-mtu"), result.FactOf(s.Facts, "client-offloads"); mtu != "1300" ||
		off != "rx-checksum" && off != "none" {
		t.Errorf("MTU %s, offloads %s", mtu, off)
	}
}

// TestPodsCannotHave checks that a setting that this kernel refuses is not supported, with the reason.
func TestPodsCannotHave(t *testing.T) {
	tg := open(t, "lab:native?congestion=there-is-none")
	_, err := targets.OpenOne(t.Context(), tg, targets.Placement{Path: result.PodPodOther})
	if !errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(), "there-is-none") {
		t.Error(err)
	}
}

func TestEveryHostIsItsOwnNamespace(t *testing.T) {
	s := site(t, open(t, "lab:native"), targets.Placement{Path: result.PodNodeSame, Rotation: 1})
	seen := map[string]bool{}
	own, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	seen[own] = true
	for _, h := range []host.Host{s.Client, s.Server} {
		var out bytes.Buffer
		namespace := host.Cmd{Args: []string{"readlink", "/proc/self/ns/net"}, Stdout: &out}
		if err := h.Run(context.Background(), namespace); err != nil {
			t.Fatal(err)
		}
		if name := strings.TrimSpace(out.String()); seen[name] {
			t.Errorf("%s is in %s, which another one is in already", h.Name(), name)
		} else {
			seen[name] = true
		}
	}
	if s.Client.Name() != "node2/pod1" || s.Server.Name() != "node2" {
		t.Errorf("rotation 1 picked %s and %s, want node2/pod1 and node2", s.Client.Name(), s.Server.Name())
	}
}

func TestCancelKillsTheCommandAndItsChildren(t *testing.T) {
	s := site(t, open(t, "lab:native"), targets.Placement{Path: result.NodeNode})
	ctx, cancel := context.WithCancel(context.Background())
	out := &signalling{found: make(chan struct{})}
	done := make(chan error, 1)
	// The grandchild leaves its session and its parent, and holds the output open.
	go func() {
		done <- s.Client.Run(ctx, host.Cmd{Args: []string{"sh", "-c",
			"setsid sh -c 'echo ready; exec sleep 1000' & exec sleep 1000"}, Stdout: out})
	}()
	<-out.found
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("a child of a killed command lives on and holds the output open")
	}
}

// A signalling is a writer that closes found at the first write.
type signalling struct{ found chan struct{} }

func (s *signalling) Write(data []byte) (int, error) {
	close(s.found)
	return len(data), nil
}

func TestOptions(t *testing.T) {
	for text, want := range map[string]string{
		"lab:vxlan?mtu=9000&rate=1Gbit/s&nodes=3&ip=6": "",
		"lab:vxlan?rate=250M&label=slow":               "",
		"lab:nothing":                                  `there is no datapath "nothing"; there are host, native`,
		"lab:vxlan?mtu=100":                            "option mtu=100: it is a whole number from 1500 to 9216",
		"lab:vxlan?mtu=x":                              "option mtu=x: it is a whole number from 1500 to 9216",
		"lab:vxlan?nodes=17":                           "option nodes=17: it is a whole number from 2 to 16",
		"lab:vxlan?rate=1k":                            "option rate=1k: it is a rate from 1.00 Mbit/s to 100 Gbit/s",
		"lab:vxlan?rate=fast":                          "option rate=fast: it is a rate",
		"lab:vxlan?ip=5":                               "option ip=5: it is 4 or 6",
		"lab:vxlan?services=ipvs":                      "services=ipvs is not one of nftables",
		"lab:vxlan?colour=red":                         `no option "colour"`,
	} {
		spec, err := result.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = New(spec, config())
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, result.ErrSpec)):
			t.Errorf("%s: got %v, want an ErrSpec with %q", text, err, want)
		}
	}
}

func TestSupportsSaysWhatIsMissing(t *testing.T) {
	if err := open(t, "lab:native").Supports(targets.Placement{Path: result.PodSvcSame}); err != nil {
		t.Errorf("lab:native: %v", err)
	}
	err := open(t, "lab:host").Supports(targets.Placement{Path: result.PodPodOther})
	if !errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(), "no pods") {
		t.Errorf("lab:host: %v", err)
	}
	err = open(t, "lab:macvlan").Supports(targets.Placement{Path: result.PodNodeSame})
	if !errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(), "cannot reach each other") {
		t.Errorf("lab:macvlan: %v", err)
	}
}

// TestMeshesCarryOnlyTCP checks that what is not TCP is not supported where it would bypass the proxies, and that the
// stand-in is called one.
func TestMeshesCarryOnlyTCP(t *testing.T) {
	tg := open(t, "lab:native+hbone")
	err := tg.Supports(targets.Placement{Path: result.PodPodOther, Datagrams: true})
	if !errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(), "without encryption") {
		t.Errorf("datagrams between pods: %v", err)
	}
	for _, p := range []targets.Placement{{Path: result.PodPodOther}, {Path: result.NodeNode, Datagrams: true}} {
		if err := tg.Supports(p); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
	facts, err := tg.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(facts, func(f result.Fact) bool { return f.Name == "proxy" })
	if i < 0 || facts[i].Value != "hbone" || !strings.Contains(facts[i].Evidence, "stand-in") {
		t.Errorf("the facts are %v", facts)
	}
	t.Setenv("KNOTMETER_CLAIMS", t.TempDir())
	warnings, err := tg.Begin(t.Context(), targets.Plan{Placements: []targets.Placement{{Path: result.PodPodOther}}})
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "stand-in") {
		t.Errorf("the warnings are %q, %v", warnings, err)
	}
}

// TestSettle checks that the kernel is probed again after a switch.
func TestSettle(t *testing.T) {
	tg := open(t, "lab:native")
	tg.(*labTarget).probed[result.PodPodOther] = result.NotSupported("the module is not loaded")
	if err := tg.Supports(targets.Placement{Path: result.PodPodOther}); err == nil {
		t.Error("the earlier answer is not remembered")
	}
	if err := tg.(targets.Switched).Settle(t.Context()); err != nil {
		t.Error(err)
	}
	if err := tg.Supports(targets.Placement{Path: result.PodPodOther}); err != nil {
		t.Error(err)
	}
}

func TestFactsAreComplete(t *testing.T) {
	facts, err := open(t, "lab:vxlan?rate=1Gbit/s").Facts(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, f := range facts {
		if f.Value == "" {
			t.Errorf("%s is empty", f.Name)
		}
		if _, twice := values[f.Name]; twice {
			t.Errorf("%s is there twice", f.Name)
		}
		values[f.Name] = f.Value
	}
	for name, want := range map[string]string{
		"datapath": "vxlan", "pod-mtu": "1450", "underlay-mtu": "1500",
		"services": "nftables", "underlay-rate": "1.00 Gbit/s",
		"underlay-header": "ipv4 udp:8472 vxlan:1 ethernet",
		"encapsulation":   "vxlan", "encryption": "none", "proxy": "none",
	} {
		if values[name] != want {
			t.Errorf("%s is %q, want %q", name, values[name], want)
		}
	}
	for _, name := range []string{"kernel", "cpu-model", "cpus", "memory",
		"virtualisation", "congestion-control", "privilege", "client-offloads"} {
		if values[name] == "" {
			t.Errorf("there is no %s", name)
		}
	}
}

// TestUnderlay checks that labs that differ only above the underlay share their references.
func TestUnderlay(t *testing.T) {
	underlay := func(text string) string {
		spec, err := result.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		lab, err := New(spec, config())
		if err != nil {
			t.Fatal(err)
		}
		return lab.(targets.Underlaid).Underlay()
	}
	native := underlay("lab:native")
	for _, same := range []string{"lab:vxlan", "lab:native?label=again", "lab:native?rules=100"} {
		if got := underlay(same); got != native {
			t.Errorf("%s is on %q, lab:native on %q", same, got, native)
		}
	}
	for _, other := range []string{"lab:native?mtu=9000", "lab:native?rate=1G", "lab:native?loss=1%", "lab:native?ip=6"} {
		if got := underlay(other); got == native {
			t.Errorf("%s is on %q as lab:native", other, got)
		}
	}
}
