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

// products lists the networks in the gallery. Their indexes are the numbers of their clusters, whose contexts the
// experiments of docs/gallery name. The first cluster has Multus too, for pods with macvlan.
var products = [][]string{
	{"flannel-host-gw", "-multus"}, {"calico-direct"}, {"kube-router"}, {"cilium-native"}, {"cilium-native-kpr"},
	{"flannel-vxlan"}, {"calico-vxlan"}, {"cilium-vxlan"},
}

// Pods and the lab have a single CPU, so that the scheduler cannot choose between one and two. All other processes of a
// cluster are in a cgroup that only gets idle CPU time: they yield to measurements, and use both CPUs while pods start.
const (
	measuredCPU      = "0"
	backgroundCgroup = "/sys/fs/cgroup/cpu/knotmeter-gallery"
)

// A gallery holds the flags of the subcommand.
type gallery struct{ binary, cluster, image, results, docs, page string }

// pages returns the names of the pages to write.
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

// benchGallery measures real CNIs side by side on clusters of test/cluster, and writes pages with tables and the HTML
// reports. It keeps complete results, and resumes incomplete experiments.
func benchGallery(ctx context.Context, args []string) error {
	var g gallery
	set := flag.NewFlagSet("gallery", flag.ContinueOnError)
	set.StringVar(&g.binary, "binary", "bin/knotmeter", "the program")
	set.StringVar(&g.cluster, "cluster", "bin/cluster", "the program that makes clusters")
	set.StringVar(&g.image, "image", "bin/agent.tar", "the agent's image")
	set.StringVar(&g.results, "results", "results/gallery", "directory of the results")
	set.StringVar(&g.docs, "docs", "docs/gallery", "directory of the experiments and pages")
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

// measure runs the incomplete experiments of the pages, on clusters that it starts and ends.
func (g gallery) measure(ctx context.Context, wanted []string) (err error) {
	var left []string
	for _, page := range wanted {
		for _, name := range pages[page].experiments {
			if complete, err := g.isComplete(name); err != nil {
				return err
			} else if !complete {
				left = append(left, name)
			}
		}
	}
	if len(left) == 0 {
		return nil
	}
	kubeconfigs, end, err := g.clusters(ctx, products)
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

// isComplete reports whether all blocks of an experiment were measured.
func (g gallery) isComplete(name string) (bool, error) {
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

// run runs or resumes an experiment.
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

// clusters starts a cluster for each network, and returns their kubeconfigs. end, which is never nil, ends those that
// were started.
func (g gallery) clusters(ctx context.Context, networks [][]string) (
	kubeconfigs []string, end func() error, err error,
) {
	restore, err := raiseInotifyLimit()
	if err != nil {
		return nil, restore, err
	}
	started := 0
	end = func() error {
		errs := []error{restore()}
		for id := range started {
			errs = append(errs, g.runCluster(context.WithoutCancel(ctx), id, "down"))
		}
		return errors.Join(append(errs, os.Remove(backgroundCgroup))...)
	}
	if err := makeBackgroundCgroup(); err != nil {
		return nil, end, err
	}
	for id, network := range networks {
		started++
		flags := append([]string{"-pod-cpus", measuredCPU, "-network"}, network...)
		if err := g.runCluster(ctx, id, "up", flags...); err != nil {
			return nil, end, err
		}
		if err := g.runCluster(ctx, id, "load", g.image); err != nil {
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

// makeBackgroundCgroup makes the cgroup of processes that are not measured.
func makeBackgroundCgroup() error {
	if err := os.Mkdir(backgroundCgroup, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.WriteFile(filepath.Join(backgroundCgroup, "cpu.idle"), []byte("1"), 0)
}

// runCluster runs a command of the cluster program for the cluster with this number, in the background cgroup. Pods
// have their own cgroups.
func (g gallery) runCluster(ctx context.Context, id int, command string, args ...string) error {
	c := exec.CommandContext(ctx, "sh", append([]string{"-c", `echo $$ >"$0" && exec "$@"`,
		filepath.Join(backgroundCgroup, "cgroup.procs"), g.cluster, command, "-id", strconv.Itoa(id)}, args...)...)
	c.Stderr = os.Stderr
	_, err := output(c)
	return err
}

// raiseInotifyLimit raises the limit of inotify instances: each kubelet needs some, and the default is 128 per machine.
// restore, which is never nil, sets the old limit.
func raiseInotifyLimit() (restore func() error, err error) {
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

// report renders the HTML report of an experiment into the directory of the pages.
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
	for _, experiment := range pages[name].experiments {
		r, err := store.Open(g.dir(experiment))
		if err != nil {
			return err
		}
		if err := g.report(ctx, experiment); err != nil {
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
