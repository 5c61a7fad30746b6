package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/explain"
)

// A clusterPair is a pair of clusters, side by side on this machine, of which it is known how they differ.
type clusterPair struct {
	name string
	a, b []string // networks of the test cluster: flags of `cluster up` after -network
	// wantedA and wantedB are the rules that name the difference where a or b is the worse one; none in a pair without
	// a difference, in which nothing must be supported.
	wantedA, wantedB []string
	// forbidden are rules that are wrong in any case, such as encapsulation on networks without it.
	forbidden []string
	heldOut   bool // nothing was tuned to it
}

// betweenNodes lists the cases in which packets between pods of two nodes are measured.
var betweenNodes = []string{requestCase, streamCase, connectCase, "pod-svc/other/tcp-rr"}

// clusterCases lists the cases of each pair. The last stays on its node.
var clusterCases = append(slices.Clone(betweenNodes), "pod-pod/same/tcp-rr")

// Rules that name what one network's datapath has and another lacks.
var (
	filters  = []string{"packet-filter", "bridge", "routing"}
	programs = []string{"ebpf-programs"}
	tunnel   = []string{"encapsulation"}
	noTunnel = []string{"encapsulation", "encryption", "proxy"}
)

var clusterPairs = []clusterPair{
	{name: "flannel, host-gw and VXLAN", a: []string{"flannel-host-gw"}, b: []string{"flannel-vxlan"}, wantedB: tunnel},
	{name: "the same flannel twice", a: []string{"flannel-host-gw"}, b: []string{"flannel-host-gw"}},
	{name: "flannel and eBPF of Cilium", a: []string{"flannel-host-gw"}, b: []string{"cilium-native-kpr"},
		wantedA: filters, wantedB: programs, forbidden: noTunnel},
	{name: "calico, direct and VXLAN", a: []string{"calico-direct"}, b: []string{"calico-vxlan"}, wantedB: tunnel},
	{name: "the same Cilium twice", a: []string{"cilium-native"}, b: []string{"cilium-native"}},
	{name: "bare routes and kube-router", a: []string{"native"}, b: []string{"kube-router"}, wantedA: filters,
		wantedB: filters, forbidden: noTunnel},
	{name: "slower links", a: []string{"flannel-host-gw"}, b: []string{"flannel-host-gw", "-rates", "300mbit,300mbit"},
		wantedB: []string{"rate-limit", "queue-drops", "waiting"}, forbidden: noTunnel},
	{name: "decoy: zones", a: []string{"flannel-host-gw"}, b: []string{"flannel-host-gw", "-zones", "b,b"},
		forbidden: noTunnel},
	{name: "decoy: a third node", a: []string{"calico-direct"}, b: []string{"calico-direct", "-nodes", "3"},
		forbidden: noTunnel},
	{name: "bare routes and flannel", a: []string{"native"}, b: []string{"flannel-host-gw"}, wantedA: filters,
		wantedB: filters, forbidden: noTunnel, heldOut: true},
	{name: "Cilium, native and VXLAN", a: []string{"cilium-native"}, b: []string{"cilium-vxlan"}, wantedB: tunnel,
		heldOut: true},
	{name: "calico and eBPF of Cilium", a: []string{"calico-direct"}, b: []string{"cilium-native-kpr"}, wantedA: filters,
		wantedB: programs, forbidden: noTunnel, heldOut: true},
	{name: "the same calico twice", a: []string{"calico-vxlan"}, b: []string{"calico-vxlan"}, heldOut: true},
	{name: "decoy: two address families", a: []string{"flannel-host-gw"}, b: []string{"flannel-host-gw", "-ip", "46"},
		forbidden: noTunnel, heldOut: true},
	{name: "calico's policies and kube-router's", a: []string{"calico-direct"}, b: []string{"kube-router"},
		wantedA: filters, wantedB: filters, forbidden: noTunnel, heldOut: true},
}

// hasDifference reports whether the two networks differ in something that may cost time.
func (p clusterPair) hasDifference() bool { return len(p.wantedA)+len(p.wantedB) > 0 }

// A clusterVerdict is a line of the log: one case of a pair.
type clusterVerdict struct {
	Round     int      `json:"round"` // of all pairs, from 1
	Pair      string   `json:"pair"`
	Case      string   `json:"case"`
	Rules     string   `json:"rules"`
	Version   string   `json:"version"`
	HeldOut   bool     `json:"held_out,omitempty"`
	Seconds   float64  `json:"seconds"`           // of the pair, its clusters included
	Verdict   string   `json:"verdict,omitempty"` // empty: none
	Reason    string   `json:"reason,omitempty"`  // why there is none
	Worse     string   `json:"worse,omitempty"`   // a or b
	Causes    []string `json:"causes,omitempty"`  // rules of the supported causes, in order
	Wanted    []string `json:"wanted,omitempty"`  // rules that name the difference
	Forbidden []string `json:"forbidden,omitempty"`
	Same      bool     `json:"same,omitempty"` // the networks differ in nothing that may cost time
}

// measureClusters measures pairs that the log lacks of the present rules, until there are n verdicts. The unit is a
// pair with its two clusters: after an interruption its cases are measured anew.
func (s *causesStudy) measureClusters(ctx context.Context) error {
	n := cmp.Or(s.n, uint64(len(clusterPairs)*len(clusterCases)))
	for round := 1; ; round++ {
		for _, p := range clusterPairs {
			present := uint64(countIf(s.verdicts, func(v clusterVerdict) bool { return v.Rules == explain.Rules }))
			if present >= n || !s.mayBegin(ctx) {
				return nil
			}
			has := func(v clusterVerdict) bool { return v.Round == round && v.Pair == p.name && v.Rules == explain.Rules }
			if slices.ContainsFunc(s.verdicts, has) {
				continue
			}
			fmt.Fprintf(os.Stderr, "round %d, %s\n", round, p.name)
			list, err := s.measurePair(ctx, p, round)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			for _, v := range list {
				if err := appendLog(clusterCausesLog, v); err != nil {
					return err
				}
				fmt.Fprintf(os.Stderr, "  %s: %s %s: %s\n", v.Case, v.Verdict, v.Worse, strings.Join(v.Causes, ", "))
			}
			s.verdicts = append(s.verdicts, list...)
			if err := s.save(); err != nil {
				return err
			}
		}
	}
}

// measurePair starts the two clusters, compares them, and ends them.
func (s *causesStudy) measurePair(ctx context.Context, p clusterPair, round int) (list []clusterVerdict, err error) {
	began := time.Now()
	dir, err := os.MkdirTemp("", "knotmeter-causes")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	g := gallery{binary: s.binary, cluster: s.cluster, image: s.image}
	kubeconfigs, end, err := g.clusters(ctx, [][]string{p.a, p.b})
	defer func() { err = errors.Join(err, end()) }()
	if err != nil {
		return nil, err
	}
	args := []string{"-c", measuredCPU, s.binary, "run", "--suite", "network", "--primary", "*", "--blocks", "11",
		"--duration", "300ms", "--warmup", "50ms", "--yes", "--progress", "none", "-o", "json",
		"--out", filepath.Join(dir, "results")}
	for i, side := range []string{"a", "b"} {
		args = append(args, "--target", "kube:?kubeconfig="+kubeconfigs[i]+"&profile=yes&label="+side)
	}
	for _, c := range clusterCases {
		args = append(args, "--case", c)
	}
	c := knotmeter(ctx, "taskset", args...)
	c.Stderr = os.Stderr
	out, err := output(c)
	if err != nil && (exitStatus(err) != runFailed || len(out) == 0) {
		return nil, err
	}
	list, err = p.read(out)
	for i := range list {
		list[i].Round, list[i].Version = round, s.version
		list[i].Seconds = math.Round(time.Since(began).Seconds())
	}
	return list, err
}

// read returns the verdicts of a pair from the JSON output of run, one for each case.
func (p clusterPair) read(out []byte) ([]clusterVerdict, error) {
	var document explained
	if err := json.Unmarshal(out, &document); err != nil {
		return nil, fmt.Errorf("the comparison: %w", err)
	}
	if document.Rules != explain.Rules {
		return nil, fmt.Errorf("the program has the rules %q, and this command %q; build both of the same files",
			document.Rules, explain.Rules)
	}
	var list []clusterVerdict
	for _, name := range clusterCases {
		v := clusterVerdict{Pair: p.name, Case: name, Rules: document.Rules, HeldOut: p.heldOut, Same: !p.hasDifference(),
			Forbidden: p.forbidden, Reason: "it has no comparison"}
		is := func(c comparison) bool { return c.Case == name && c.Role == "primary" }
		if i := slices.IndexFunc(document.Comparisons, is); i >= 0 {
			c := document.Comparisons[i]
			v.Verdict, v.Reason, v.Causes = c.Verdict, "", document.supported(name)
			switch {
			case c.worse():
				v.Worse, v.Wanted = "b", p.wantedB
			case c.different():
				v.Worse, v.Wanted = "a", p.wantedA
			}
		}
		if !slices.Contains(betweenNodes, name) { // on its node no packet is in a tunnel
			v.Forbidden = noTunnel
			v.Wanted = slices.DeleteFunc(slices.Clone(v.Wanted), func(r string) bool { return slices.Contains(noTunnel, r) })
		}
		list = append(list, v)
	}
	return list, nil
}
