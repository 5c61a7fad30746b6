package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/store"
)

// The networks that the gallery is about. Their places here are the numbers of their clusters, which the experiments of
// docs/gallery name by their contexts. The first has Multus too, for the pods of macvlan.
var products = [][]string{
	{"flannel-host-gw", "-multus"}, {"calico-direct"}, {"kube-router"}, {"cilium-native"}, {"cilium-native-kpr"},
	{"flannel-vxlan"}, {"calico-vxlan"}, {"cilium-vxlan"},
}

// Pods and the lab have one CPU, so that no scheduler chooses between one CPU and two. Everything else that a cluster
// runs is in a cgroup that takes what CPU time is left over: it gives way to what is measured, and has both CPUs
// while pods start.
const (
	measuredCPU = "0"
	background  = "/sys/fs/cgroup/cpu/knotmeter-gallery"
)

// A gallery is the flags.
type gallery struct{ binary, cluster, image, results, docs, page string }

// pages are the names of those that are wanted.
func (g gallery) pages() ([]string, error) {
	all := slices.Sorted(maps.Keys(pages))
	switch {
	case g.page == "":
		return all, nil
	case !slices.Contains(all, g.page):
		return nil, fmt.Errorf("-page: %q is none of %s", g.page, strings.Join(all, ", "))
	}
	return []string{g.page}, nil
}

// benchGallery measures real CNIs side by side on clusters of test/cluster, and writes pages with tables, and the HTML
// reports. Results that are there already are not measured again, and half an experiment is resumed.
func benchGallery(ctx context.Context, args []string) error {
	var g gallery
	set := flag.NewFlagSet("gallery", flag.ContinueOnError)
	set.StringVar(&g.binary, "binary", "bin/knotmeter", "the program")
	set.StringVar(&g.cluster, "cluster", "bin/cluster", "what makes clusters")
	set.StringVar(&g.image, "image", "bin/agent.tar", "the agent's image")
	set.StringVar(&g.results, "results", "results/gallery", "where results are kept")
	set.StringVar(&g.docs, "docs", "docs/gallery", "where the experiments are, and the page goes")
	set.StringVar(&g.page, "page", "", "the only page to measure and write (default: all)")
	if err := set.Parse(args); err != nil {
		return err
	}
	wanted, err := g.pages()
	if err != nil {
		return err
	}
	if err := g.measure(ctx, wanted); err != nil {
		return err
	}
	for _, name := range wanted {
		if err := g.writePage(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// measure carries out what is not there yet for these pages, on clusters that end with it.
func (g gallery) measure(ctx context.Context, wanted []string) (err error) {
	var left []string
	for _, page := range wanted {
		for _, name := range pages[page].of {
			if done, err := g.done(name); err != nil {
				return err
			} else if !done {
				left = append(left, name)
			}
		}
	}
	if len(left) == 0 {
		return nil
	}
	kubeconfigs, end, err := g.clusters(ctx)
	defer func() { err = errors.Join(err, end()) }()
	if err != nil {
		return err
	}
	for _, name := range left {
		if err := g.run(ctx, name, kubeconfigs); err != nil {
			return err
		}
	}
	return nil
}

func (g gallery) dir(name string) string { return filepath.Join(g.results, name) }

// done says whether every block of an experiment was measured.
func (g gallery) done(name string) (bool, error) {
	r, err := store.Open(g.dir(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	last := 0
	for _, run := range r.Runs {
		last = max(last, run.Block)
	}
	return last == r.Experiment.Design.Blocks, nil
}

// run measures an experiment, or the rest of it.
func (g gallery) run(ctx context.Context, name string, kubeconfigs []string) error {
	args := []string{"-c", measuredCPU, g.binary, "run", "--progress", "plain", "--yes"}
	if _, err := os.Stat(g.dir(name)); err == nil {
		args = append(args, "--resume", g.dir(name))
	} else {
		args = append(args, "--file", filepath.Join(g.docs, name+".yaml"), "--out", g.dir(name))
	}
	c := knotmeter(ctx, "taskset", args...)
	c.Env = append(os.Environ(), "KUBECONFIG="+strings.Join(kubeconfigs, ":"))
	c.Stderr = os.Stderr
	if _, err := output(c); err != nil && exitStatus(err) != runFailed {
		return err
	}
	return nil
}

// clusters starts one for each product and returns their kubeconfigs, and what ends those that were begun.
func (g gallery) clusters(ctx context.Context) (kubeconfigs []string, end func() error, err error) {
	restore, err := moreWatches()
	if err != nil {
		return nil, restore, err
	}
	begun := 0
	end = func() error {
		errs := []error{restore()}
		for id := range begun {
			errs = append(errs, g.tell(context.WithoutCancel(ctx), id, "down"))
		}
		return errors.Join(append(errs, os.Remove(background))...)
	}
	if err := makeBackground(); err != nil {
		return nil, end, err
	}
	for id, network := range products {
		begun++
		flags := append([]string{"-pod-cpus", measuredCPU, "-network"}, network...)
		if err := g.tell(ctx, id, "up", flags...); err != nil {
			return nil, end, err
		}
		if err := g.tell(ctx, id, "load", g.image); err != nil {
			return nil, end, err
		}
		file, err := output(exec.CommandContext(ctx, g.cluster, "kubeconfig", "-id", strconv.Itoa(id)))
		if err != nil {
			return nil, end, err
		}
		kubeconfigs = append(kubeconfigs, strings.TrimSpace(string(file)))
	}
	return kubeconfigs, end, nil
}

// makeBackground makes the cgroup of what is not measured.
func makeBackground() error {
	if err := os.Mkdir(background, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.WriteFile(filepath.Join(background, "cpu.idle"), []byte("1"), 0)
}

// tell gives a command to a cluster. What that starts is in the background, but for pods, which have cgroups of their
// own.
func (g gallery) tell(ctx context.Context, id int, command string, args ...string) error {
	c := exec.CommandContext(ctx, "sh", append([]string{"-c", `echo $$ >"$0" && exec "$@"`,
		filepath.Join(background, "cgroup.procs"), g.cluster, command, "-id", strconv.Itoa(id)}, args...)...)
	c.Stderr = os.Stderr
	_, err := output(c)
	return err
}

// moreWatches lets the kubelets of so many nodes watch files at the same time: each takes some instances of inotify, of
// which a machine has 128 by default. It returns what puts the limit back.
func moreWatches() (restore func() error, err error) {
	const file, enough = "/proc/sys/fs/inotify/max_user_instances", 1024
	nothing := func() error { return nil }
	text, err := os.ReadFile(file)
	if err != nil {
		return nothing, err
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || n >= enough {
		return nothing, err
	}
	if err := os.WriteFile(file, []byte(strconv.Itoa(enough)), 0); err != nil {
		return nothing, err
	}
	return func() error { return os.WriteFile(file, text, 0) }, nil
}

// report renders an experiment beside the page.
func (g gallery) report(ctx context.Context, name string) error {
	if _, err := output(knotmeter(ctx, g.binary, "report", g.dir(name))); err != nil {
		return err
	}
	page, err := os.ReadFile(filepath.Join(g.dir(name), "report.html"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(g.docs, name+".html"), page, 0o644)
}

// writePage renders the reports of a page's experiments, and writes the page.
func (g gallery) writePage(ctx context.Context, name string) error {
	var all []result.Results
	for _, of := range pages[name].of {
		r, err := store.Open(g.dir(of))
		if err != nil {
			return err
		}
		if err := g.report(ctx, of); err != nil {
			return err
		}
		all = append(all, r.Results)
	}
	text, err := pages[name].text(all)
	if err != nil {
		return err
	}
	file := filepath.Join(g.docs, name+".md")
	fmt.Println("wrote", file)
	return os.WriteFile(file, text, 0o644)
}
