package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/userfile"
)

// findTool returns the tools that names lists, separated by commas. For each family of which none is listed, it adds
// the tools of the family, the default first.
func findTool(names string) (family.Tool, error) {
	all := registry.Families().Tools()
	chosen, err := family.Only(all, names)
	if err != nil {
		return nil, fmt.Errorf("--tool: %w", err)
	}
	set := chosen.(family.Set)
	for _, f := range registry.Families() {
		listed := func(t family.Tool) bool {
			return slices.ContainsFunc(set, func(c family.Tool) bool { return c.Name() == t.Name() })
		}
		if !slices.ContainsFunc(f.Tools, listed) {
			set = append(set, f.Tools...)
		}
	}
	return set, nil
}

// findSuites returns the suites with these names, such as network:quick and storage:jobs.fio, each once.
func findSuites(names []string) ([]family.Suite, error) {
	known := registry.Families().Suites()
	var found []family.Suite
	for n, name := range names {
		if slices.Contains(names[:n], name) {
			continue
		}
		i := slices.IndexFunc(known, func(s family.Suite) bool { return s.Name == name })
		if i >= 0 {
			found = append(found, known[i])
			continue
		}
		s, err := suiteOfFile(name)
		if errors.Is(err, family.ErrNoCase) {
			err = fmt.Errorf("there is no %q; there are %s", name, prose.Choices(name, suiteNames(known)))
		}
		if err != nil {
			return nil, fmt.Errorf("--suite: %w", err)
		}
		found = append(found, s)
	}
	return found, nil
}

func suiteNames(known []family.Suite) []string {
	var names []string
	for _, s := range known {
		names = append(names, s.Name)
	}
	for _, f := range registry.Families() {
		if f.File != nil {
			names = append(names, f.Name+":FILE")
		}
	}
	return names
}

// suiteOfFile reads a suite from a file, such as jobs.fio for storage:jobs.fio. If no family reads such files, it
// returns family.ErrNoCase.
func suiteOfFile(text string) (family.Suite, error) {
	kind, file, _ := strings.Cut(text, ":")
	for _, f := range registry.Families() {
		if f.File == nil || f.Name != kind || file == "" {
			continue
		}
		data, err := userfile.Read(file, userfile.Limit)
		if errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(file, "./") {
			break // rather a misspelled suite than a missing file
		}
		if err != nil {
			return family.Suite{}, err
		}
		return f.File.Read(file, data)
	}
	return family.Suite{}, family.ErrNoCase
}
