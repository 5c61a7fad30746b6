// Package toolchain tests .ci/toolchain, by which the Makefile finds Go: with a fake of an old Go and without network,
// and in TestBuild with Debian's packages and Go's module proxy.
package toolchain

import (
	"bufio"
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/mod/modfile"
)

const repository = "../.."

// oldGo is a fake of the go command. Its toolchain is like a module: files are not executable, and go.mod has another
// name. With HOLD it stops in the middle of the download until its input ends.
const oldGo = `#!/bin/sh
set -e
case $1 in
version)
	[ "$GOTOOLCHAIN" = local ] && echo "go version $VERSION linux/amd64"
	;;
mod)
	[ "$PWD $2 $3" = "/ download -json" ] && [ -z "$OFFLINE" ]
	printf '{\n\t"Sum": "%s",\n\t"GoModSum": "h1:x"\n}\n' "$SUM"
	made=$GOMODCACHE/$4
	mkdir -p "$made/bin" "$made/pkg/tool/linux_any" "$made/src/cmd"
	printf '#!/bin/sh\necho the new Go\n' >"$made/bin/go"
	[ -z "$HOLD" ] || { echo held >&2; cat >/dev/null; }
	touch "$made/bin/gofmt" "$made/pkg/tool/linux_any/compile" "$made/src/_go.mod" "$made/src/cmd/_go.mod"
	;;
esac
`

// A machine is an environment with a search path, which has an old Go, and a cache of the user.
type machine struct{ path, cache string }

func newMachine(t *testing.T) machine {
	t.Helper()
	m := machine{t.TempDir(), filepath.Join(t.TempDir(), "cache")}
	if err := os.WriteFile(filepath.Join(m.path, "go"), []byte(oldGo), 0o755); err != nil {
		t.Fatal(err)
	}
	return m
}

// goroot returns the directory of the toolchain that go.mod requires.
func (m machine) goroot(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.ParseLax("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(m.cache, "knotmeter", "go"+file.Go.Version+".linux-"+runtime.GOARCH)
}

// sum returns the hash that the toolchain must have.
func (m machine) sum(t *testing.T) string {
	t.Helper()
	sums, err := os.ReadFile(filepath.Join(repository, ".ci/toolchain.sums"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(sums)) {
		if name, sum, _ := strings.Cut(strings.TrimSpace(line), " "); name == filepath.Base(m.goroot(t)) {
			return sum
		}
	}
	t.Fatalf("no hash of %s is in .ci/toolchain.sums", filepath.Base(m.goroot(t)))
	return ""
}

// command returns a command in the repository with the machine's environment, without the Go that runs the tests.
func (m machine) command(t *testing.T, settings []string, name string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = repository
	for _, setting := range os.Environ() {
		name, _, _ := strings.Cut(setting, "=")
		if !slices.Contains([]string{"GO", "GOROOT", "GOTOOLCHAIN", "MAKEFLAGS", "MFLAGS"}, name) {
			c.Env = append(c.Env, setting)
		}
	}
	c.Env = append(c.Env, "PATH="+m.path+":/usr/sbin:/usr/bin:/sbin:/bin", "XDG_CACHE_HOME="+m.cache, "VERSION=go1.19.8",
		"SUM="+m.sum(t))
	c.Env = append(c.Env, settings...)
	return c
}

// run runs the script, and returns its standard output and its standard error.
func (m machine) run(t *testing.T, settings ...string) (out, problems string, err error) {
	t.Helper()
	c := m.command(t, settings, ".ci/toolchain")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	text, err := c.Output()
	return strings.TrimSpace(string(text)), stderr.String(), err
}

// left returns the names in the cache.
func (m machine) left(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(m.cache, "knotmeter"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// checkWhole checks that the toolchain is complete, and that nothing else is in the cache.
func (m machine) checkWhole(t *testing.T) {
	t.Helper()
	goroot := m.goroot(t)
	for _, name := range []string{"bin/go", "bin/gofmt", "pkg/tool/linux_any/compile"} {
		if info, err := os.Stat(filepath.Join(goroot, name)); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s cannot be executed: %v", name, err)
		}
	}
	for _, name := range []string{"src/go.mod", "src/cmd/go.mod"} {
		if _, err := os.Stat(filepath.Join(goroot, name)); err != nil {
			t.Error(err)
		}
	}
	if got, err := filepath.Glob(goroot + "/*"); err != nil || len(got) != 3 {
		t.Errorf("the toolchain holds %q, want bin, pkg and src alone", got)
	}
	if got, want := m.left(t), []string{filepath.Base(goroot)}; !slices.Equal(got, want) {
		t.Errorf("the cache holds %q, want %q", got, want)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	fetched := filepath.Join(m.goroot(t), "bin/go")
	for _, c := range []struct{ version, want string }{
		{"go1.21.0", "go"},
		{"go1.21rc2", "go"},
		{"go1.26.8 X:nodwarf5", "go"},
		{"go1.100", "go"},
		{"devel go1.27-3f2a1b0 Tue Nov 24", "go"},
		{"go1.20.14", fetched},
		{"go1.20", fetched},
		{"go1.20rc1", fetched},
		{"go1.19.8", fetched},
		{"go1.9.7", fetched},
	} {
		if got, problems, err := m.run(t, "VERSION="+c.version); got != c.want || err != nil {
			t.Errorf("%s: got %q, want %q, %v\n%s", c.version, got, c.want, err, problems)
		}
	}
}

// TestOldGo checks that the toolchain is downloaded once.
func TestOldGo(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	if _, problems, err := m.run(t); err != nil || !strings.Contains(problems, "getting go1.") {
		t.Fatalf("%v: %s", err, problems)
	}
	m.checkWhole(t)
	got, problems, err := m.run(t, "OFFLINE=yes", "GOROOT=/usr/local/go")
	if err != nil || problems != "" {
		t.Fatalf("a second time: %v: %s", err, problems)
	}
	words := strings.Fields(got)
	c := exec.Command(words[0], words[1:]...)
	c.Env = []string{"GOROOT=/usr/local/go"}
	if out, err := c.Output(); err != nil || string(out) != "the new Go\n" {
		t.Errorf("%s: %q, %v", got, out, err)
	}
	if want := "env -u GOROOT " + filepath.Join(m.goroot(t), "bin/go"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestMake checks which Go the Makefile uses.
func TestMake(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for _, c := range []struct {
		setting, target, want string
		made                  int
	}{
		{"GO=/opt/go", "build", "/opt/go build", 0},
		{"VERSION=go1.24.4", "build", "=0 go build", 0},
		{"OFFLINE=yes", "clean", "rm -rf bin", 0},
		{"OFFLINE=yes", "build", "no Go to build with", 0},
		{"OFFLINE=", "build", filepath.Join(m.goroot(t), "bin/go") + " build", 1},
	} {
		out, err := m.command(t, []string{c.setting}, "make", "-n", c.target).CombinedOutput()
		if !strings.Contains(string(out), c.want) {
			t.Errorf("%s: no %q: %v\n%s", c.setting, c.want, err, out)
		}
		if left := m.left(t); len(left) != c.made {
			t.Errorf("%s: left %q", c.setting, left)
		}
	}
}

// startHeld starts the script, which stops in the middle of its download until the input is closed.
func (m machine) startHeld(t *testing.T) (call *exec.Cmd, input io.Closer) {
	t.Helper()
	c := m.command(t, []string{"HOLD=yes"}, ".ci/toolchain")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(problems); lines.Text() != "held"; {
		if !lines.Scan() {
			t.Fatalf("the call ended before its download: %v", c.Wait())
		}
	}
	return c, input
}

// TestHash checks that a toolchain with another hash is not used, although the checksum database is off.
func TestHash(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	_, problems, err := m.run(t, "GOSUMDB=off", "SUM=h1:other")
	if err == nil || !strings.Contains(problems, "has the hash 'h1:other' and not '"+m.sum(t)+"'") {
		t.Errorf("%v: %s", err, problems)
	}
	if left := m.left(t); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

// TestKilled checks that a killed script leaves no toolchain, and the next call removes its leftovers once they are a
// day old.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		m := newMachine(t)
		c, _ := m.startHeld(t)
		if err := syscall.Kill(-c.Process.Pid, signal); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err == nil {
			t.Fatalf("%v: the call ended well", signal)
		}
		left := m.left(t)
		if slices.Contains(left, filepath.Base(m.goroot(t))) || signal != syscall.SIGKILL && len(left) > 0 {
			t.Errorf("%v left %q", signal, left)
		}
		for _, name := range left {
			past := time.Now().Add(-50 * time.Hour)
			if err := os.Chtimes(filepath.Join(m.cache, "knotmeter", name), past, past); err != nil {
				t.Fatal(err)
			}
		}
		if _, problems, err := m.run(t); err != nil {
			t.Fatalf("after %v: %v: %s", signal, err, problems)
		}
		m.checkWhole(t)
	}
}

// TestTwoAtOnce checks that the one of two concurrent calls that ends last does not replace the toolchain of the other.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	first, input := m.startHeld(t)
	if _, problems, err := m.run(t); err != nil {
		t.Fatalf("%v: %s", err, problems)
	}
	input.Close()
	if err := first.Wait(); err != nil {
		t.Fatal(err)
	}
	m.checkWhole(t)
}

// TestErrors checks that an error says what to do, and that nothing is left in the cache.
func TestErrors(t *testing.T) {
	t.Parallel()
	bare := t.TempDir()
	for _, name := range []string{"awk", "bash", "dirname", "find", "mkdir", "mktemp", "rm", "uname"} {
		at, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(at, filepath.Join(bare, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ setting, want string }{
		{"OFFLINE=yes", "cannot get go1."},
		{"PATH=" + bare, "no Go in PATH, and no apt-get"},
	} {
		m := newMachine(t)
		out, problems, err := m.run(t, c.setting)
		if err == nil || out != "" || !strings.Contains(problems, c.want) || !strings.Contains(problems, "install Go 1.21") {
			t.Errorf("%s: %v, %q, %s", c.setting, err, out, problems)
		}
		if left := m.left(t); len(left) > 0 {
			t.Errorf("%s: left %q", c.setting, left)
		}
	}
}

// TestShell checks the scripts of .ci with shellcheck.
func TestShell(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Skip("there is no shellcheck here")
	}
	scripts, err := filepath.Glob(filepath.Join(repository, ".ci/*"))
	scripts = slices.DeleteFunc(scripts, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.IsDir() || filepath.Ext(path) == ".sums"
	})
	if err != nil || len(scripts) < 4 {
		t.Fatalf("found %q, %v", scripts, err)
	}
	if out, err := exec.Command("shellcheck", scripts...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestDevcontainer checks that the devcontainer uses the image and a Makefile target of CI.
func TestDevcontainer(t *testing.T) {
	t.Parallel()
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(repository, name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var container struct{ Image, PostCreateCommand string }
	if err := json.Unmarshal(read(".devcontainer/devcontainer.json"), &container); err != nil {
		t.Fatal(err)
	}
	if container.Image == "" || !bytes.Contains(read(".github/workflows/ci.yml"), []byte("image: "+container.Image+"\n")) {
		t.Errorf("CI does not run in %q", container.Image)
	}
	target, is := strings.CutPrefix(container.PostCreateCommand, "make ")
	if !is || !bytes.Contains(read("Makefile"), []byte("\n"+target+":\n")) {
		t.Errorf("%q is no target of the Makefile", container.PostCreateCommand)
	}
}

// TestBuild builds the program without Go, and with the Go of Debian 12.
func TestBuild(t *testing.T) {
	if os.Getenv("KNOTMETER_TOOLCHAIN") == "" {
		t.Skip("getting Go from Debian and the module proxy needs the network: make toolchain-test")
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("this is not Debian")
	}
	objects := t.TempDir()
	for name, directory := range map[string]func(*testing.T) string{"none": withoutGo, "debian": debianGo} {
		t.Run(name, func(t *testing.T) {
			path := directory(t)
			m := machine{path, t.TempDir()}
			program := filepath.Join(t.TempDir(), "knotmeter")
			settings := []string{"PATH=" + path, "GOCACHE=" + objects}
			if out, err := m.command(t, settings, "make", "build", "BIN="+program).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			info, err := buildinfo.ReadFile(program)
			if err != nil {
				t.Fatal(err)
			}
			want, _, _ := strings.Cut(filepath.Base(m.goroot(t)), ".linux")
			if info.GoVersion != want {
				t.Errorf("built by %s, want %s", info.GoVersion, want)
			}
			if out, err := exec.Command(program, "--version").CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// withoutGo returns a search path with all system programs except for Go.
func withoutGo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, from := range []string{"/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		programs, err := filepath.Glob(from + "/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range programs {
			name := filepath.Base(at)
			if err := os.Symlink(at, filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"go", "gofmt"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return dir
}

// debianGo downloads Debian 12's Go and returns a search path with it first; Go is not installed.
func debianGo(t *testing.T) string {
	t.Helper()
	if err := exec.Command("apt-cache", "show", "golang-1.19-go").Run(); err != nil {
		t.Skip("this Debian has no Go 1.19")
	}
	dir := t.TempDir()
	c := exec.Command("sh", "-ec", `apt-get download golang-1.19-go golang-1.19-src
		for package in *.deb; do dpkg -x "$package" .; done
		usr/lib/go-1.19/bin/go version`)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "go version go1.19") {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "usr/lib/go-1.19/bin") + ":" + withoutGo(t)
}
