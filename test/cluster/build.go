//go:build linux

package main

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Versions of the programs. The first constant is the version of the cache itself.
const (
	version        = "1"
	kubeVersion    = "v1.36.3"
	containerdPath = "github.com/containerd/containerd/v2/cmd/"
	containerdAt   = "@v2.4.2"
	cniPath        = "github.com/containernetworking/plugins/plugins/"
	cniAt          = "@v1.9.1"
)

const (
	pauseImage = "knotmeter.local/pause:1" // its container holds the namespaces of a pod
	vaultImage = "knotmeter.local/vault:1"
)

var cniPlugins = []string{
	"main/ptp", "main/bridge", "main/macvlan", "main/host-device", "main/loopback", "ipam/host-local", "meta/portmap",
}

// A program is built once into the cache: from source, from install, or by copying files.
type program struct {
	name    string
	module  string // directory of the module to build in, relative to this file's
	source  string // package to build there: a path in it, or an import path
	files   string // directory to copy from the module source, which is then no program
	install string // package to install, with its version
	ldflags string
	tags    string // of the build
	image   string // name of an image of the program alone; may be empty
	path    string // of the program in its image
}

// programs returns the programs that a cluster with these settings needs.
func (s spec) programs() []program {
	v := "-X k8s.io/component-base/version."
	list := []program{
		{name: "kubernetes", module: "kubernetes", source: ".",
			ldflags: v + "gitVersion=" + kubeVersion + " " + v + "gitMajor=1 " + v + "gitMinor=36"},
		{name: "provisioner", module: "kubernetes", source: "./provisioner"},
		{name: "etcd", module: "etcd", source: "."},
		{name: "multus", module: "multus", source: "."}, vethProgram,
		{name: "pause", module: ".", source: "./pause", image: pauseImage, path: "pause"},
	}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		list = append(list, program{name: name, install: containerdPath + name + containerdAt})
	}
	for _, path := range cniPlugins {
		list = append(list, program{name: filepath.Base(path), install: cniPath + path + cniAt})
	}
	if s.Filter {
		list = append(list, routerProgram)
	}
	return append(list, s.plugin().programs()...)
}

// vault is built by its own command: it takes some minutes to compile, and only tests of applications need it. Vault's
// tag minimal leaves out the plug-ins of clouds and databases, keeps transit and Raft, and halves that time.
var vault = program{name: "vault", module: "vault", source: ".", tags: "minimal", image: vaultImage, path: "bin/vault"}

// build compiles the programs that the cache lacks or has from other sources, and makes their images. It waits for
// other commands that build only if a program is missing.
func build(ctx context.Context, s spec, list ...program) error {
	missing, err := s.missing(list)
	if err != nil || len(missing) == 0 {
		return err
	}
	unlock, err := s.lockCache(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if missing, err = s.missing(missing); err != nil { // another command may have built some
		return err
	}
	for _, p := range missing {
		fmt.Fprintf(os.Stderr, "building %s\n", p.name)
		if err := p.build(ctx, s); err != nil {
			return fmt.Errorf("build %s: %w", p.name, err)
		}
		stamp, err := p.stamp(sourceDir())
		if err != nil {
			return err
		}
		if err := writeNew(s.program(p.name)+".from", []byte(stamp), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// missing returns the programs that the cache lacks or has from other sources.
func (s spec) missing(list []program) ([]program, error) {
	var missing []program
	for _, p := range list {
		stamp, err := p.stamp(sourceDir())
		if err != nil {
			return nil, err
		}
		if !p.built(s, stamp) {
			missing = append(missing, p)
		}
	}
	return missing, nil
}

// buildVault compiles Vault and prints the paths of the program and its image.
func buildVault(ctx context.Context, s spec) error {
	if err := build(ctx, s, vault); err != nil {
		return err
	}
	fmt.Printf("%s\n%s\n", s.program(vault.name), s.image(vault.name))
	return nil
}

// lockCache waits until no other command writes to the cache, so that clusters that start in parallel compile nothing
// twice and do not rename each other's files. The lock of a killed command ends with it.
func (s spec) lockCache(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(s.Bin, 0o755); err != nil {
		return nil, err
	}
	file, err := os.Create(s.program("lock"))
	if err != nil {
		return nil, err
	}
	err = await(ctx, file.Name(), time.Hour, func() error {
		return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	})
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { file.Close() }, nil
}

// built reports whether the cache has the program with this stamp, and its image.
func (p program) built(s spec, stamp string) bool {
	from, err := os.ReadFile(s.program(p.name) + ".from")
	_, missing := os.Stat(s.program(p.name))
	if p.image != "" && missing == nil {
		_, missing = os.Stat(s.image(p.name))
	}
	return err == nil && missing == nil && string(from) == stamp
}

// stamp identifies the sources of the program: a package with its version, or a checksum of its files here.
func (p program) stamp(dir string) (string, error) {
	if p.install != "" {
		return p.install, nil
	}
	files, err := filepath.Glob(filepath.Join(dir, p.module, p.source, "*.go"))
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintln(sum, p.ldflags, p.tags)
	for _, file := range append(files, filepath.Join(dir, p.module, "go.mod"), filepath.Join(dir, p.module, "go.sum")) {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		fmt.Fprintln(sum, filepath.Base(file), len(text))
		sum.Write(text)
	}
	return fmt.Sprintf("%x\n", sum.Sum(nil)), nil
}

// build compiles the program into a temporary directory and renames it, so that an interrupted build leaves none.
func (p program) build(ctx context.Context, s spec) error {
	dir, err := os.MkdirTemp(s.Bin, "build")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, p.name)
	args := []string{"install", "-trimpath", "-ldflags", "-s -w", p.install}
	if p.source != "" {
		args = []string{"build", "-C", filepath.Join(sourceDir(), p.module), "-trimpath",
			"-ldflags", "-s -w " + p.ldflags, "-tags", p.tags, "-o", made, p.source}
	}
	if p.files != "" {
		return p.copyFiles(ctx, s, made)
	}
	if _, err := goCommand(ctx, []string{"CGO_ENABLED=0", "GOBIN=" + dir}, args...); err != nil {
		return err
	}
	if err := os.Rename(made, s.program(p.name)); err != nil || p.image == "" {
		return err
	}
	text, err := os.ReadFile(s.program(p.name))
	if err != nil {
		return err
	}
	return writeImage(s.image(p.name), p.image, []string{"/" + p.path}, map[string][]byte{p.path: text})
}

// goCommand runs the go command and returns its standard output.
func goCommand(ctx context.Context, env []string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "go", args...)
	c.Env = append(os.Environ(), env...)
	var problems strings.Builder
	c.Stderr = &problems
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s%s", strings.Join(args, " "), err, problems.String(), out)
	}
	return strings.TrimSpace(string(out)), nil
}

// copyFiles copies a directory of a module into the cache, since the module cache may be emptied later.
func (p program) copyFiles(ctx context.Context, s spec, made string) error {
	dir, err := goCommand(ctx, nil, "list", "-C", filepath.Join(sourceDir(), p.module), "-m", "-f", "{{.Dir}}", p.source)
	if err != nil {
		return err
	}
	if err := os.CopyFS(made, os.DirFS(filepath.Join(dir, p.files))); err != nil {
		return err
	}
	if err := os.RemoveAll(s.program(p.name)); err != nil {
		return err
	}
	return os.Rename(made, s.program(p.name))
}

// sourceDir returns the directory of this file. The command runs on the machine that it was built on.
func sourceDir() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(file)
}

// writeNew writes a file under another name and renames it.
func writeNew(path string, text []byte, mode fs.FileMode) error {
	if err := os.WriteFile(path+".new", text, mode); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// writeImage writes an image of one layer in the format of `docker save`.
func writeImage(path, name string, entrypoint []string, files map[string][]byte) error {
	var layer, image strings.Builder
	if err := writeTar(&layer, files, 0o755); err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(layer.String()))
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{"Entrypoint": entrypoint},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sum)}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]any{map[string]any{"Config": "config.json",
		"RepoTags": []string{name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	parts := map[string][]byte{"manifest.json": manifest, "config.json": config, "layer.tar": []byte(layer.String())}
	if err := writeTar(&image, parts, 0o644); err != nil {
		return err
	}
	return writeNew(path, []byte(image.String()), 0o644)
}

func writeTar(w *strings.Builder, files map[string][]byte, mode int64) error {
	t := tar.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := t.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(files[name]))}); err != nil {
			return err
		}
		if _, err := t.Write(files[name]); err != nil {
			return err
		}
	}
	return t.Close()
}
