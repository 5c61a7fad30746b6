package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	pull "github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/google/go-cmp/cmp"
	"github.com/knotmeter/knotmeter/internal/host/remote"
)

func build(t *testing.T, files map[string][]byte) v1.Image {
	t.Helper()
	img, err := Build(Spec{Arch: "arm64", Files: files})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// TestReproducible checks that the digest, which is recorded with results, depends on the content only. The expected
// one was computed once.
func TestReproducible(t *testing.T) {
	files := map[string][]byte{remote.AgentPath: []byte("agent"), "/usr/bin/tool": []byte("tool")}
	img := build(t, files)
	config, err := img.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	const want = "sha256:8b58c020bc8f0acbad017f5a66d43b5c0dbf2259233729f6b6a52de4c7f1b179"
	if config.String() != want {
		t.Errorf("the image's configuration is %s, and was %s", config, want)
	}
	again, err := build(t, maps.Clone(files)).Digest()
	if first, _ := img.Digest(); err != nil || first != again {
		t.Errorf("%s, then %s, %v", first, again, err)
	}
}

func TestContent(t *testing.T) {
	img := build(t, map[string][]byte{remote.AgentPath: []byte("agent"), "/usr/bin/tool": []byte("tool")})
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if file.Architecture != "arm64" || file.OS != "linux" ||
		file.Config.User != user || file.Config.Entrypoint[0] != remote.AgentPath {
		t.Errorf("%+v", file)
	}
	var archive bytes.Buffer
	if err := Write(&archive, "example.test/agent:1", map[string]Image{"arm64": img}); err != nil {
		t.Fatal(err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	read, err := tarball.Image(open, nil)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := read.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	in, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for content := tar.NewReader(in); ; {
		h, err := content.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = h.Mode
		if h.ModTime.Unix() != 0 || h.Uid != 0 {
			t.Errorf("%s is of %v, user %d", h.Name, h.ModTime, h.Uid)
		}
	}
	want := map[string]int64{
		"tmp/": 0o1777, "usr/": 0o755, "usr/bin/": 0o755, "usr/bin/tool": 0o755, "knotmeter-agent": 0o755,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestPush checks that the registry has what was built: one image, or an index of several architectures.
func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	reference := strings.TrimPrefix(server.URL, "http://") + "/team/agent:1"
	amd, err := Build(Spec{Arch: "amd64", Files: map[string][]byte{remote.AgentPath: []byte("for amd64")}})
	if err != nil {
		t.Fatal(err)
	}
	arm := build(t, map[string][]byte{remote.AgentPath: []byte("for arm64")})
	one, err := Push(t.Context(), reference, map[string]Image{"amd64": amd}, true)
	digest, _ := amd.Digest()
	if err != nil || !strings.HasSuffix(one, "/team/agent@"+digest.String()) {
		t.Errorf("%s, %v", one, err)
	}
	both, err := Push(t.Context(), reference, map[string]Image{"amd64": amd, "arm64": arm}, true)
	if err != nil || both == one {
		t.Fatalf("%s, %v", both, err)
	}
	if again := pushArchive(t, reference, map[string]Image{"amd64": amd, "arm64": arm}); again != both {
		t.Errorf("from an archive %s was pushed, want %s", again, both)
	}
	// The archive of a single image is in Docker's format, so its manifest has other media types.
	pushArchive(t, reference, map[string]Image{"amd64": amd})
	tag, err := name.ParseReference(reference, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	single, err := pull.Image(tag)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := single.ConfigName()
	if want, err := amd.ConfigName(); err != nil || got != want {
		t.Errorf("from an archive the image %s was pushed, want %s", got, want)
	}
	ref, err := name.ParseReference(both, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	for arch, want := range map[string]Image{"amd64": amd, "arm64": arm} {
		got, err := pull.Image(ref, pull.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
		if err != nil {
			t.Fatal(err)
		}
		a, _ := got.Digest()
		if b, _ := want.Digest(); a != b {
			t.Errorf("%s: pulled %s, pushed %s", arch, a, b)
		}
	}
	if _, err := Push(t.Context(), "no reference", map[string]Image{"amd64": amd}, false); err == nil {
		t.Error("an image was pushed to an invalid reference")
	}
	server.Close()
	if _, err := Push(t.Context(), reference, map[string]Image{"amd64": amd}, true); err == nil ||
		!strings.Contains(err.Error(), "push "+reference) {
		t.Errorf("to a closed server: %v", err)
	}
}

// pushArchive writes images to an archive and pushes them from it.
func pushArchive(t *testing.T, reference string, images map[string]Image) string {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "images.tar")
	var b bytes.Buffer
	if err := errors.Join(Write(&b, reference, images), os.WriteFile(archive, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	read, err := Read(archive, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := Push(t.Context(), reference, read, true)
	if err != nil {
		t.Fatal(err)
	}
	return pushed
}

// TestReadErrors checks that other archives are errors, and that nothing is written outside of the directory.
func TestReadErrors(t *testing.T) {
	dir := t.TempDir()
	var outside, other bytes.Buffer
	if err := errors.Join(writeTar(&outside, nil, map[string][]byte{"../escaped": nil}, 0o600),
		writeTar(&other, nil, map[string][]byte{"index.json": []byte("{}")}, 0o600)); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		outside.String(): "escape", other.String(): "0 indexes", "no archive": "unexpected EOF", "": "index.json",
	} {
		archive := filepath.Join(dir, "archive")
		if err := os.WriteFile(archive, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(archive, t.TempDir()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

func TestErrors(t *testing.T) {
	for want, s := range map[string]Spec{
		"no agent":     {Arch: "amd64", Files: map[string][]byte{"/x": {1}}},
		`for "sparc"`:  {Arch: "sparc", Files: map[string][]byte{remote.AgentPath: {1}}},
		"amd64, arm64": {Files: map[string][]byte{remote.AgentPath: {1}}},
	} {
		if _, err := Build(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	images := map[string]Image{"arm64": build(t, map[string][]byte{remote.AgentPath: {1}})}
	if err := Write(io.Discard, "not a name", images); err == nil {
		t.Error("an image was written under an invalid name")
	}
}

// TestTools checks that the dynamic linker finds all libraries of a tool when the files are the root directory.
func TestTools(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("tools are taken from Linux machines")
	}
	for command, want := range map[string]string{
		"echo here": "here\n",
		"openssl speed -seconds 1 -bytes 64 -evp sha256":     "sha256",
		"sysbench cpu --time=1 run":                          "events per second",
		"stress-ng --matrix 1 --timeout 1s --temp-path /tmp": "successful run",
	} {
		tool, _, _ := strings.Cut(command, " ")
		t.Run(tool, func(t *testing.T) {
			if _, err := exec.LookPath(tool); err != nil {
				t.Skip(tool + " is not installed on this machine")
			}
			testTool(t, strings.Fields(command), want)
		})
	}
}

// testTool checks that a command of a tool prints a text where nothing is but the tool's files.
func testTool(t *testing.T, args []string, want string) {
	files := map[string][]byte{}
	if err := AddTools(files, runtime.GOARCH, args[:1]); err != nil {
		t.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(files))
	if files["/usr/bin/"+args[0]] == nil {
		t.Fatalf("%v", names)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may change its root directory; the files are " + strings.Join(names, " "))
	}
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "tmp"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("chroot", append([]string{root, "/usr/bin/" + args[0]}, args[1:]...)...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%q, %v; the files are %v", out, err, names)
	}
}

func TestToolErrors(t *testing.T) {
	other := "arm64"
	if runtime.GOARCH == other {
		other = "amd64"
	}
	if err := AddTools(map[string][]byte{}, other, []string{"echo"}); err == nil ||
		!strings.Contains(err.Error(), "on such a machine") {
		t.Error(err)
	}
	if err := AddTools(map[string][]byte{}, other, nil); err != nil {
		t.Error(err)
	}
	if runtime.GOOS != "linux" {
		return
	}
	if err := AddTools(map[string][]byte{}, runtime.GOARCH, []string{"no-such-tool-anywhere"}); err == nil ||
		!strings.Contains(err.Error(), "install it") {
		t.Error(err)
	}
}
