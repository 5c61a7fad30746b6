//go:build unix

package local

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/unit"
	"github.com/knotmeter/knotmeter/internal/vault"
)

// settings are all options of a local target.
var settings = slices.Concat(storageSettings, cpuSettings,
	targets.Within(func(d *localTarget) *vault.Instance { return &d.vault }, vault.Settings()))

// storageSettings are the options about a directory.
var storageSettings = []targets.Setting[localTarget]{
	targets.NewSetting(targets.Option{
		Name: "size", Example: "4GiB",
		Help: "the most that may be used (default: half of what is free above 10 %, up to 16 GiB)",
	}, func(d *localTarget) *int64 { return &d.size }, parseSize),
	targets.NewSetting(targets.Option{
		Name: "volume", Example: "reuse",
		Help: "reuse: one file for all blocks, written once; fresh: a new file in each block",
	}, func(d *localTarget) *bool { return &d.fresh }, targets.Choice("reuse", "fresh")),
}

// cpuSettings are the options about the CPU time of what runs.
var cpuSettings = []targets.Setting[localTarget]{
	targets.NewSetting(targets.Option{
		Name: "cpu-limit", Example: "950m",
		Help: "CPU time that runs may use, as a pod's limit: 2 is two CPUs, 950m 95 % of one; it needs root (default: none)",
	}, func(d *localTarget) *cpuLimit { return &d.limit }, parseCPULimit),
}

// A cpuLimit is a limit on CPU time; the zero value is none.
type cpuLimit struct {
	text  string
	milli int // thousandths of a CPU
}

// Limits of a cpuLimit: the kernel counts in periods of 100 ms and accepts quotas from 1 ms on.
const (
	minMilliCPUs = 10
	maxMilliCPUs = 1_000_000
)

// parseCPULimit parses a number of CPUs as Kubernetes writes it: 2, 0.95, 950m.
func parseCPULimit(value string) (cpuLimit, error) {
	number, milli := strings.CutSuffix(value, "m")
	scale := 1000.0
	if milli {
		scale = 1
	}
	n, err := strconv.ParseFloat(number, 64)
	whole := math.Round(n * scale) // 0.57 times 1000 may differ slightly from 570
	if err != nil || !(whole >= minMilliCPUs && whole <= maxMilliCPUs) || math.Abs(n*scale-whole) > 1e-6 {
		return cpuLimit{}, fmt.Errorf("it is a number of CPUs from %dm to %d, such as 950m or 2", minMilliCPUs,
			maxMilliCPUs/1000)
	}
	return cpuLimit{value, int(whole)}, nil
}

// Options returns the options of a local target.
func Options() []targets.Option { return targets.Options(settings) }

// pathPattern matches paths that fio's job files can contain.
var pathPattern = regexp.MustCompile(`^/[A-Za-z0-9 ._/@+,=:-]*$`)

// parse returns the target of a parsed text. Every error Is result.ErrSpec.
func parse(spec result.Spec) (*localTarget, error) {
	d := &localTarget{}
	err := targets.Read(spec, settings, d)
	if err != nil {
		return nil, err
	}
	if spec.Name != "" {
		d.path = filepath.Clean(spec.Name)
	}
	switch {
	case d.vault.Deploy:
		err = errors.New("vault=deploy needs a cluster, as kube: targets have; give the URL of a Vault that is there")
	case d.path == "" && targets.GivesAny(spec, storageSettings):
		err = errors.New("size= and volume= are about a directory; which one? for example local:/var/tmp")
	case d.path != "" && !filepath.IsAbs(spec.Name):
		err = fmt.Errorf("%s is not an absolute path, and where it is would depend on where the program is started",
			spec.Name)
	case d.path != "" && !pathPattern.MatchString(spec.Name):
		err = errors.New("the path has other characters than letters, digits, spaces and ._/@+,=:- " +
			"and so no job file can name it")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", result.ErrSpec, spec.Text, err)
	}
	return d, nil
}

// parseSize parses a size from 1 MiB to 1 EiB, in bytes.
func parseSize(value string) (int64, error) {
	n, err := unit.ParseAs(value, unit.Byte)
	if err != nil || n < 1<<20 || n > 1<<60 {
		return 0, errors.New("it is a size from 1MiB on, such as 4GiB")
	}
	return int64(n), nil
}

// Directories returns directories that complete the path of a target.
func Directories(spec result.Spec) []string {
	if !filepath.IsAbs(spec.Name) {
		return []string{"/"}
	}
	parent := filepath.Dir(spec.Name + "x") // of a path that ends in a slash, the path itself
	entries, _ := os.ReadDir(parent)        // unreadable directories complete to nothing
	var list []string
	for _, e := range entries {
		if e.IsDir() {
			list = append(list, filepath.Join(parent, e.Name())+"/")
		}
	}
	return list
}
