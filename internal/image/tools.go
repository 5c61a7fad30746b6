package image

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// AddTools adds programs of this machine to files, with the shared libraries that they need at their paths on this
// machine.
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
		if err := AddProgram(files, arch, tool, found, os.ReadFile); err != nil {
			return fmt.Errorf("tool %s: %w", tool, err)
		}
	}
	return nil
}

// AddProgram adds the program at a path to files as /usr/bin/name, with the shared libraries that it needs. read reads
// a file of the system that they come from: a machine, or packages of a distribution. Its error wraps fs.ErrNotExist
// for a missing file.
func AddProgram(files map[string][]byte, arch, name, at string, read func(path string) ([]byte, error)) error {
	program, err := read(at)
	if err != nil {
		return err
	}
	files["/usr/bin/"+path.Base(name)] = program
	return libraries{files, arch, read}.add(at, program)
}

// A libraries value adds shared libraries to files.
type libraries struct {
	files map[string][]byte
	arch  string
	read  func(path string) ([]byte, error)
}

// add adds the libraries that a program or library needs, and recursively theirs.
func (l libraries) add(name string, program []byte) error {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return fmt.Errorf("%s is no program but perhaps a script: %w", name, err)
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			linker, err := io.ReadAll(p.Open())
			if err != nil {
				return err
			}
			needed = append(needed, strings.TrimRight(string(linker), "\x00"))
		}
	}
	paths, err := f.DynString(elf.DT_RUNPATH)
	if err != nil {
		return err
	}
	for _, library := range needed {
		at, text, err := l.find(library, paths)
		if err != nil {
			return err
		}
		if l.files[at] != nil {
			continue
		}
		l.files[at] = text
		if err := l.add(at, text); err != nil {
			return err
		}
	}
	return nil
}

// triples are Debian's directory names of architectures.
var triples = map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}

// find searches for a library in its run path and in the directories that dynamic linkers of common distributions use.
func (l libraries) find(name string, runpath []string) (at string, text []byte, err error) {
	if filepath.IsAbs(name) {
		text, err = l.read(name)
		return name, text, err
	}
	var dirs []string
	for _, p := range runpath {
		for _, dir := range filepath.SplitList(p) {
			if filepath.IsAbs(dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	own := triples[l.arch]
	for _, dir := range append(dirs, "/lib/"+own, "/usr/lib/"+own, "/lib64", "/usr/lib64", "/lib", "/usr/lib") {
		at := filepath.Join(dir, name)
		text, err := l.read(at)
		if !errors.Is(err, fs.ErrNotExist) {
			return at, text, err
		}
	}
	return "", nil, fmt.Errorf("the library %s was not found", name)
}
