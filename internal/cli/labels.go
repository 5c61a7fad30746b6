package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/prose"
)

// labels is the flag --label: pairs of the path and the name of a results directory, repeated.
type labels [][2]string

const labelHelp = "`DIR=NAME` name of one of several directories in the comparison, and of its target if it has " +
	"only one; repeated"

func (l *labels) String() string {
	var list []string
	for _, x := range *l {
		list = append(list, x[0]+"="+x[1])
	}
	return strings.Join(list, ",")
}

func (l *labels) Type() string { return "dir=name" }

// Set adds a label. The path of a directory may contain "=", a label must not.
func (l *labels) Set(text string) error {
	at := strings.LastIndex(text, "=")
	if at <= 0 || at == len(text)-1 {
		return fmt.Errorf("%q is not a results directory and its name, such as results/a='Cluster A'", text)
	}
	dir, name := filepath.Clean(text[:at]), text[at+1:]
	for _, x := range *l {
		switch {
		case x[0] == dir && x[1] != name:
			return fmt.Errorf("%s is given two names", dir)
		case x[0] != dir && x[1] == name:
			return fmt.Errorf("%s and %s are given one name, %s", x[0], dir, name)
		}
	}
	*l = append(*l, [2]string{dir, name})
	return nil
}

// parts returns the directories with their labels: the user's, else the directory's name, or its path if others have
// the same name. A directory that is given twice gets a number.
func (l labels) parts(dirs []string) ([]compare.Part, error) {
	var paths []string
	for _, dir := range dirs {
		paths = append(paths, filepath.Clean(dir))
	}
	for _, x := range l {
		switch {
		case len(dirs) == 1:
			return nil, fmt.Errorf("--label: it tells several directories apart, and there is one")
		case !slices.Contains(paths, x[0]):
			return nil, fmt.Errorf("--label: there is no directory %s here; there are %s", x[0], prose.Choices(x[0], paths))
		}
	}
	parts := make([]compare.Part, len(dirs))
	used := map[string]bool{}
	for i, path := range paths {
		p := &parts[i]
		p.Label = directoryName(path)
		if slices.ContainsFunc(paths, func(other string) bool { return other != path && directoryName(other) == p.Label }) {
			p.Label = path
		}
		if at := slices.IndexFunc(l, func(x [2]string) bool { return x[0] == path }); at >= 0 {
			p.Label, p.Named = l[at][1], true
		}
		plain := p.Label
		for n := 2; used[p.Label]; n++ {
			p.Label = plain + " " + strconv.Itoa(n)
		}
		used[p.Label] = true
	}
	return parts, nil
}
