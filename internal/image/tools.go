package image

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// AddTools puts programs of this machine into files, with the shared libraries that they need, each where it is here.
func AddTools(files map[string][]byte, arch string, tools []string) error {
	if len(tools) > 0 && (runtime.GOOS != "linux" || runtime.GOARCH != arch) {
		return fmt.Errorf("tools are taken from this machine, which is %s/%s: "+
			"make an image with tools for linux/%s on such a machine", runtime.GOOS, runtime.GOARCH, arch)
	}
	for _, tool := range tools {
		found, err := exec.LookPath(tool)
		if err != nil {
			return fmt.Errorf("tool %s: %w; install it on this machine, from where it is taken", tool, err)
		}
		text, err := os.ReadFile(found)
		if err != nil {
			return fmt.Errorf("tool %s: %w", tool, err)
		}
		files["/usr/bin/"+filepath.Base(tool)] = text
		if err := addLibraries(files, found); err != nil {
			return fmt.Errorf("tool %s: %w", tool, err)
		}
	}
	return nil
}

// addLibraries adds what a program or a library needs, and what that needs.
func addLibraries(files map[string][]byte, program string) error {
	f, err := elf.Open(program)
	if err != nil {
		return fmt.Errorf("%s is no program but perhaps a script: %w", program, err)
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			name, err := io.ReadAll(p.Open())
			if err != nil {
				return err
			}
			needed = append(needed, strings.TrimRight(string(name), "\x00"))
		}
	}
	paths, err := f.DynString(elf.DT_RUNPATH)
	if err != nil {
		return err
	}
	for _, name := range needed {
		at, err := findLibrary(name, paths)
		if err != nil {
			return err
		}
		if files[at] != nil {
			continue
		}
		if files[at], err = os.ReadFile(at); err != nil {
			return err
		}
		if err := addLibraries(files, at); err != nil {
			return err
		}
	}
	return nil
}

// findLibrary looks for a library where the dynamic linkers of common distributions do.
func findLibrary(name string, runpath []string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	triple := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	var dirs []string
	for _, p := range runpath {
		for _, dir := range filepath.SplitList(p) {
			if filepath.IsAbs(dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	for _, dir := range append(dirs, "/lib/"+triple, "/usr/lib/"+triple, "/lib64", "/usr/lib64", "/lib", "/usr/lib") {
		at := filepath.Join(dir, name)
		if _, err := os.Stat(at); err == nil {
			return at, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("the library %s was not found", name)
}
