//go:build unix

package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/knotmeter/knotmeter/internal/family/app/vault"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/unit"
)

var settings = slices.Concat(storageSettings,
	targets.Within(func(d *directory) *vault.Instance { return &d.vault }, vault.Settings()))

// storageSettings are about a directory.
var storageSettings = []targets.Setting[directory]{
	targets.NewSetting(targets.Option{
		Name: "size", Example: "4GiB", Help: "the most that may be used (default: half of what is free, up to 16 GiB)",
	}, func(d *directory) *int64 { return &d.size }, size),
	targets.NewSetting(targets.Option{
		Name: "volume", Example: "reuse",
		Help: "reuse: one file for all blocks, written once; fresh: a new file in each block",
	}, func(d *directory) *bool { return &d.fresh }, targets.Choice("reuse", "fresh")),
}

// Options lists the options of a local target.
func Options() []targets.Option { return targets.Options(settings) }

// paths are what job files can name.
var paths = regexp.MustCompile(`^/[A-Za-z0-9 ._/@+,=:-]*$`)

// parse reads the text of a target. Every error Is targets.ErrSpec.
func parse(spec targets.Spec) (*directory, error) {
	d := &directory{}
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
	case d.path != "" && !paths.MatchString(spec.Name):
		err = errors.New("the path has other characters than letters, digits, spaces and ._/@+,=:- " +
			"and so no job file can name it")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", targets.ErrSpec, spec.Text, err)
	}
	return d, nil
}

func size(value string) (int64, error) {
	n, err := unit.ParseAs(value, unit.Byte)
	if err != nil || n < 1<<20 || n > 1<<60 {
		return 0, errors.New("it is a size from 1MiB on, such as 4GiB")
	}
	return int64(n), nil
}

// Directories are the directories that the path of a target may go on with, for completion.
func Directories(spec targets.Spec) []string {
	if !filepath.IsAbs(spec.Name) {
		return []string{"/"}
	}
	in := filepath.Dir(spec.Name + "x") // the whole of a path that ends in a slash
	entries, _ := os.ReadDir(in)        // without what cannot be read
	var list []string
	for _, e := range entries {
		if e.IsDir() {
			list = append(list, filepath.Join(in, e.Name())+"/")
		}
	}
	return list
}
