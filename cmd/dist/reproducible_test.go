package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/knotmeter/knotmeter/internal/image"
)

const (
	repository  = "../.."
	testVersion = "v0.0.0-test"
)

// TestReproducible makes a release twice, in two directories with different user settings, and installs it as
// documented.
func TestReproducible(t *testing.T) {
	if os.Getenv("KNOTMETER_RELEASE") == "" {
		t.Skip("making a release twice takes long: make dist-test")
	}
	if runtime.GOOS != "linux" {
		t.Skip("releases are made on Debian")
	}
	first, err := release{source: repository, version: testVersion}.build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Run("again", func(t *testing.T) { buildAgain(t, string(first[checksumsFile])) })
	dir := filepath.Join(t.TempDir(), testVersion)
	if err := write(dir, first); err != nil {
		t.Fatal(err)
	}
	t.Run("install", func(t *testing.T) { followInstructions(t, dir) })
	t.Run("fio", func(t *testing.T) { runFio(t, filepath.Join(dir, "knotmeter-agent-fio_"+testVersion+".tar")) })
}

// buildAgain makes the release from a copy of the sources, compiles the agent with an empty cache, and compares both.
func buildAgain(t *testing.T, want string) {
	source := copySources(t)
	defer syscall.Umask(syscall.Umask(0o077))
	for name, value := range map[string]string{
		"TZ": "Asia/Tokyo", "LC_ALL": "C", "GOFLAGS": "-tags=other", "GOAMD64": "v3", "TMPDIR": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
	again := release{source: source, version: testVersion}
	files, err := again.build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(string(files[checksumsFile]), "\n")); diff != "" {
		t.Errorf("two builds differ:\n%s", diff)
	}
	agent := platform{"linux", runtime.GOARCH}
	cached, err := again.compile(t.Context(), "knotmeter-agent", agent)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", t.TempDir())
	if fresh, err := again.compile(t.Context(), "knotmeter-agent", agent); err != nil || !bytes.Equal(cached, fresh) {
		t.Errorf("compiled with an empty cache the agent differs, %v", err)
	}
}

// copySources copies the tracked files of the repository, and untracked ones that are not ignored.
func copySources(t *testing.T) string {
	t.Helper()
	list, err := exec.Command("git", "-C", repository, "ls-files", "-z", "--cached", "--others",
		"--exclude-standard").Output()
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	for name := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(repository, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed, and not committed yet
		}
		at := filepath.Join(to, name)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// commands returns the indented lines of the first section of docs/installing.md.
func commands(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "docs/installing.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n## From a release\n")
	section, _, found := strings.Cut(rest, "\n## ")
	lines := regexp.MustCompile(`(?m)^    .*\n`).FindAllString(section, -1)
	if !found || len(lines) < 6 {
		t.Fatalf("the page on installing has %d commands", len(lines))
	}
	return strings.Join(lines, "")
}

// followInstructions runs the commands of docs/installing.md with a curl that copies the files of a release, and runs
// the program under both of its names.
func followInstructions(t *testing.T, released string) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the page shows the commands for amd64")
	}
	home, tools := t.TempDir(), t.TempDir()
	fake := "#!/bin/sh\nfor url; do :; done\ncp \"" + filepath.Dir(released) + "/${url#*/releases/download/}\" .\n"
	if err := os.WriteFile(filepath.Join(tools, "curl"), []byte(fake), 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(script string) string {
		c := exec.Command("bash", "-euo", "pipefail", "-c", script)
		c.Dir = home
		c.Env = append(os.Environ(), "HOME="+home, "PATH="+tools+":"+home+"/.local/bin:"+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v:\n%s\n%s", err, script, out)
		}
		return string(out)
	}
	page := regexp.MustCompile(`(?m)^ *version=\S+`)
	script := page.ReplaceAllString(commands(t), "version="+testVersion)
	if out := run(script); !strings.Contains(out, "_linux_amd64.tar.gz: OK") {
		t.Errorf("no checksum was checked:\n%s", out)
	}
	for command, want := range map[string]string{
		"knotmeter version":           "knotmeter " + testVersion + " (" + runtime.Version() + ", linux/amd64)\n",
		"kubectl-knotmeter version":   "knotmeter " + testVersion + " (" + runtime.Version() + ", linux/amd64)\n",
		"kubectl-knotmeter --help":    "\n  kubectl knotmeter ",
		"ls knotmeter_*/licenses/*/*": "LICENSE",
	} {
		if out := run(command); !strings.Contains(out, want) {
			t.Errorf("%s: no %q in:\n%s", command, want, out)
		}
	}
	if _, err := image.AgentFrom(filepath.Join(home, ".local/bin/knotmeter"), "amd64"); err != nil {
		t.Errorf("the program is not static: %v", err)
	}
	// The agents lie next to the program, and the link of the plugin does not hide them.
	run("kubectl-knotmeter image build --arch amd64,arm64 --out agent.tar && cmp agent.tar " +
		filepath.Join(released, "knotmeter-agent_"+testVersion+".tar"))
}

// runFio runs fio in a root directory with the files of the image and nothing else.
func runFio(t *testing.T, archive string) {
	if os.Geteuid() != 0 {
		t.Skip("only root may change its root directory")
	}
	images, err := image.Read(archive, t.TempDir())
	if err != nil || len(images) != len(image.Architectures) {
		t.Fatalf("%d images, %v", len(images), err)
	}
	root := t.TempDir()
	c := exec.Command("tar", "-x", "-C", root)
	content := mutate.Extract(images[runtime.GOARCH])
	defer content.Close()
	c.Stdin = content
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.Command("chroot", root, "/usr/bin/fio", "--name=job", "--filename=/tmp/file", "--size=1M",
		"--rw=randwrite", "--ioengine=libaio", "--output-format=terse").CombinedOutput()
	if err != nil || !strings.Contains(string(out), ";fio-3.") {
		t.Errorf("%v: %s", err, out)
	}
	notices, err := filepath.Glob(filepath.Join(root, "usr/share/doc/*/copyright"))
	if err != nil || len(notices) < 10 {
		t.Errorf("copyrights: %v, %v", notices, err)
	}
}
