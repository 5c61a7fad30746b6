package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/knotmeter/knotmeter/internal/golden"
)

func TestArchive(t *testing.T) {
	entries := []entry{{"knotmeter", 0o755, []byte("program")}, {"LICENSE", 0o644, []byte("terms")}}
	packed, err := archive("top", entries)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(entries)
	if again, err := archive("top", entries); err != nil || !bytes.Equal(packed, again) {
		t.Errorf("another order of the entries makes another archive, %v", err)
	}
	var got []string
	for _, h := range headers(t, packed) {
		if h.Typeflag != tar.TypeReg || !h.ModTime.Equal(modified) || h.Uid != 0 || h.Gid != 0 || h.Uname != "" {
			t.Errorf("%+v", h)
		}
		got = append(got, fmt.Sprintf("%s %o %d", h.Name, h.Mode, h.Size))
	}
	if diff := cmp.Diff([]string{"top/LICENSE 644 5", "top/knotmeter 755 7"}, got); diff != "" {
		t.Error(diff)
	}
}

func headers(t *testing.T, packed []byte) []*tar.Header {
	t.Helper()
	in, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	var all []*tar.Header
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
}

// TestChecksums lets sha256sum verify the checksums.
func TestChecksums(t *testing.T) {
	files := map[string][]byte{"b": []byte("two"), "a": []byte("one")}
	sums := checksums(files)
	dir := t.TempDir()
	files[checksumsFile] = sums
	if err := write(dir, files); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("sha256sum", "-c", "--strict", checksumsFile)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil || string(out) != "a: OK\nb: OK\n" {
		t.Errorf("%v: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	c = exec.Command("sha256sum", "-c", checksumsFile)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err == nil {
		t.Errorf("a changed file passes: %s", out)
	}
}

func TestKrewManifest(t *testing.T) {
	archives, files := map[platform]string{}, map[string][]byte{}
	for _, p := range platforms {
		archives[p] = fmt.Sprintf("knotmeter_v1.2.3_%s_%s.tar.gz", p.os, p.arch)
		files[archives[p]] = []byte(p.os + p.arch)
	}
	text, err := krewManifest("v1.2.3", archives, files)
	if err != nil {
		t.Fatal(err)
	}
	var manifest map[string]any
	if err := yaml.UnmarshalStrict(text, &manifest); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	golden.Check(t, "testdata/krew.yaml", string(text))
}

func TestSemantic(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "v1.2.3", "v1.2.3-4-gda782fa": "v1.2.3-4-gda782fa", "da782fa": "v0.0.0-gda782fa",
		"da782fa-dirty": "v0.0.0-gda782fa-dirty", "0123456": "v0.0.0-g0123456",
	} {
		if got := semanticVersion(version); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
}

// TestBillOfMaterials validates a bill with the schema of CycloneDX, which the library contains.
func TestBillOfMaterials(t *testing.T) {
	info := &buildinfo.BuildInfo{GoVersion: "go1.26.8", Deps: []*debug.Module{
		{Path: "example.org/b", Version: "v2.0.0+incompatible"},
		{Path: "example.org/old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/a", Version: "v1.0.1"}},
	}}
	sum := digest(nil)
	text, err := billOfMaterials("v1.2.3",
		[]part{
			{"knotmeter", platform{"darwin", "arm64"}, sum, info},
			{"knotmeter-agent", platform{"linux", "arm64"}, sum, info},
		},
		[]deb{
			{name: "fio", version: "3.39-1", arch: "arm64", image: "arm64", digest: sum},
			{name: "zlib1g", version: "1:1.3+really1", arch: "arm64", image: "arm64", digest: sum},
		})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/bill.json", string(text))
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	schema := cycloneDXSchema(t)
	if err := schema.Validate(document); err != nil {
		t.Error(err)
	}
	if err := schema.Validate(map[string]any{"bomFormat": "CycloneDX"}); err == nil {
		t.Error("the schema takes anything")
	}
}

// cycloneDXSchema returns the schema of bills of materials.
func cycloneDXSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	for _, name := range []string{"bom-1.6.schema.json", "spdx.schema.json", "jsf-0.82.schemax.json"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "schema", name))
		if err != nil {
			t.Fatal(err)
		}
		var named struct {
			ID string `json:"$id"`
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err := errors.Join(err, json.Unmarshal(text, &named), compiler.AddResource(named.ID, document)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestSources(t *testing.T) {
	golden.Check(t, "testdata/sources", sources("")+sources("20261123T000000Z"))
}

func TestFind(t *testing.T) {
	installed := mergeTrees([]deb{
		{name: "a", files: tree{
			"usr/lib/triple/liba.so.1":     {link: "liba.so.1.2"},
			"usr/lib/triple/liba.so.1.2":   {text: []byte("a")},
			"usr/lib64/ld.so":              {link: "../lib/triple/ld.so"},
			"usr/lib/triple/loop":          {link: "loop"},
			"usr/share/doc/a-base/licence": {text: []byte("terms")},
		}},
		{name: "b", files: tree{
			"usr/lib/triple/ld.so": {text: []byte("linker")},
			"usr/bin/alias":        {link: "/usr/lib/triple/liba.so.1"},
			"usr/share/doc/b":      {link: "a-base"},
		}},
	})
	for at, want := range map[string]content{
		"/usr/lib/triple/liba.so.1": {0, []byte("a"), ""},
		"/lib/triple/liba.so.1":     {0, []byte("a"), ""},
		"/lib64/ld.so":              {1, []byte("linker"), ""},
		"/usr/bin/alias":            {0, []byte("a"), ""},
		"/usr/share/doc/b/licence":  {0, []byte("terms"), ""},
	} {
		got, err := installed.find(at)
		if err != nil || got.owner != want.owner || string(got.text) != string(want.text) {
			t.Errorf("%s: %+v, %v", at, got, err)
		}
	}
	if _, err := installed.find("/lib/triple/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := installed.find("/lib/triple/loop"); err == nil || !strings.Contains(err.Error(), "too many links") {
		t.Error(err)
	}
}

// TestUnpack reads a package made by dpkg-deb.
func TestUnpack(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("there is no dpkg-deb here")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"DEBIAN/control": "Package: tool\nVersion: 1:2-3\nArchitecture: arm64\n" +
			"Maintainer: a <a@example.org>\nDescription: a tool\n",
		"usr/bin/tool": "program",
	} {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("tool", filepath.Join(dir, "usr/bin/alias")); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(t.TempDir(), "tool.deb")
	if out, err := exec.Command("dpkg-deb", "--root-owner-group", "--build", dir, at).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p, err := unpack(t.Context(), at, "arm64")
	if err != nil {
		t.Fatal(err)
	}
	if p.name != "tool" || p.version != "1:2-3" || p.arch != "arm64" || len(p.digest) != 64 {
		t.Errorf("%+v", p)
	}
	if string(p.files["usr/bin/tool"].text) != "program" || p.files["usr/bin/alias"].link != "tool" {
		t.Errorf("%+v", p.files)
	}
	if _, err := unpack(t.Context(), filepath.Join(dir, "usr/bin/tool"), "arm64"); err == nil {
		t.Error("a file that is no package was unpacked")
	}
}
