package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A platform is an operating system and an architecture, as in GOOS and GOARCH.
type platform struct{ os, arch string }

// platforms lists the platforms of released programs.
var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}}

// compile compiles a command of the module: static, and independent of the directory, the user's settings and the state
// of the repository.
func (r release) compile(ctx context.Context, command string, p platform) (program []byte, err error) {
	err = withTempDir(func(dir string) error {
		at := filepath.Join(dir, command)
		flags := "-s -w -X main.version=" + r.version
		if p.os == "linux" && command == "knotmeter" {
			flags += " -E main.entry" // as in the Makefile
		}
		_, err := r.goCommand(ctx, p, "build", "-trimpath", "-buildvcs=false",
			"-ldflags", flags, "-o", at, "./cmd/"+command)
		if err != nil {
			return err
		}
		program, err = os.ReadFile(at)
		return err
	})
	return program, err
}

// goCommand runs the go command in the module for a platform, and returns its standard output.
func (r release) goCommand(ctx context.Context, p platform, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = r.source
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch,
		"GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off", "GOFLAGS=-mod=readonly", "GOWORK=off")
	return output(c)
}

// output returns the standard output of a command. An error includes its standard error.
func output(c *exec.Cmd) ([]byte, error) {
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, errs.Bytes())
	}
	return out.Bytes(), nil
}

// noticeFile matches names of files that must accompany copies of a module.
var noticeFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)`)

// notices returns Knotmeter's licence, and the notices of the modules in the programs.
func (r release) notices(ctx context.Context) ([]entry, error) {
	own, err := os.ReadFile(filepath.Join(r.source, "LICENSE"))
	if err != nil {
		return nil, err
	}
	entries := []entry{{"LICENSE", 0o644, own}}
	modules, err := r.modules(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		name, dir, _ := strings.Cut(m, "\t")
		files, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if f.IsDir() || !noticeFile.MatchString(f.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				return nil, err
			}
			entries = append(entries, entry{"licenses/" + name + "/" + f.Name(), 0o644, text})
		}
	}
	return entries, nil
}

// modules returns the modules in the programs on all platforms, each as its path, a tab, and its directory.
func (r release) modules(ctx context.Context) ([]string, error) {
	var all []string
	for _, p := range platforms {
		out, err := r.goCommand(ctx, p, "list", "-deps", "-f",
			"{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Dir}}{{end}}{{end}}", "./cmd/knotmeter", "./cmd/knotmeter-agent")
		if err != nil {
			return nil, err
		}
		all = append(all, strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
