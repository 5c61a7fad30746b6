package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/knotmeter/knotmeter/internal/host/remote"
)

// buildAll returns an image for each architecture.
func buildAll(t *testing.T) map[string]Image {
	t.Helper()
	images := map[string]Image{}
	for _, arch := range Architectures {
		img, err := Build(Spec{Arch: arch, Files: map[string][]byte{remote.AgentPath: []byte("for " + arch)}})
		if err != nil {
			t.Fatal(err)
		}
		images[arch] = img
	}
	return images
}

// TestPushCredentials checks that stored credentials are sent, and that the error without them says how to store some.
func TestPushCredentials(t *testing.T) {
	inside := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "sailor" || password != "knots" {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inside.ServeHTTP(w, r)
	}))
	defer server.Close()
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	host := strings.TrimPrefix(server.URL, "http://")
	if _, err := Push(t.Context(), host+"/agent:1", buildAll(t), true); err == nil ||
		!strings.Contains(err.Error(), "docker login") {
		t.Errorf("without credentials: %v", err)
	}
	secret := base64.StdEncoding.EncodeToString([]byte("sailor:knots"))
	config := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, secret)
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	pushed, err := Push(t.Context(), host+"/agent:1", buildAll(t), true)
	digest, derr := Digest(buildAll(t))
	if err != nil || derr != nil || pushed != host+"/agent@"+digest {
		t.Errorf("pushed %s, %v; the digest is %s, %v", pushed, err, digest, derr)
	}
}

// TestPushTLS checks that a certificate of an unknown authority is an error, unless certificates are not checked.
func TestPushTLS(t *testing.T) {
	server := httptest.NewTLSServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer server.Close()
	reference := strings.TrimPrefix(server.URL, "https://") + "/agent:1"
	if _, err := Push(t.Context(), reference, buildAll(t), false); err == nil {
		t.Error("a certificate of an unknown authority was accepted")
	}
	if _, err := Push(t.Context(), reference, buildAll(t), true); err != nil {
		t.Error(err)
	}
}

// TestPushNeverPlain checks that without insecure nothing is sent over plain HTTP: not to a registry at an address that
// the library considers local, not after a redirection, and not for a token.
func TestPushNeverPlain(t *testing.T) {
	var plain atomic.Int64
	inside := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	open := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		plain.Add(1)
		inside.ServeHTTP(w, r)
	}))
	defer open.Close()
	where := strings.TrimPrefix(open.URL, "http://")
	if _, err := Push(t.Context(), where+"/agent:1", buildAll(t), false); !errors.Is(err, errPlain) || plain.Load() > 0 {
		t.Errorf("%d requests, %v", plain.Load(), err)
	}
	for name, answer := range map[string]http.HandlerFunc{
		"redirection": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, open.URL+r.URL.Path, http.StatusTemporaryRedirect)
		},
		"realm": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+open.URL+`/token",service="test"`)
			w.WriteHeader(http.StatusUnauthorized)
		},
	} {
		server := httptest.NewTLSServer(answer)
		defer server.Close()
		reference := strings.TrimPrefix(server.URL, "https://") + "/agent:1"
		if _, err := push(t.Context(), reference, buildAll(t), onlyHTTPS{server.Client().Transport}); err == nil ||
			plain.Load() > 0 {
			t.Errorf("%s: %d requests, %v", name, plain.Load(), err)
		}
	}
	for _, host := range []string{"10.0.0.1:5000", "192.168.1.1", "registry.local", "localhost:5000", "[::1]:5000"} {
		r := httptest.NewRequest(http.MethodGet, "http://"+host+"/v2/", nil)
		if _, err := (onlyHTTPS{}).RoundTrip(r); !errors.Is(err, errPlain) {
			t.Errorf("%s: %v", host, err)
		}
	}
	// Over HTTPS such an address is allowed.
	server := httptest.NewTLSServer(inside)
	defer server.Close()
	reference := strings.TrimPrefix(server.URL, "https://") + "/agent:1"
	if _, err := push(t.Context(), reference, buildAll(t), onlyHTTPS{server.Client().Transport}); err != nil {
		t.Error(err)
	}
}

// TestLayout checks that an archive of several architectures is an OCI layout: one index names the image, and every
// blob has its digest.
func TestLayout(t *testing.T) {
	var first, again bytes.Buffer
	for _, to := range []*bytes.Buffer{&first, &again} {
		if err := Write(to, "example.test/agent:1", buildAll(t)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), again.Bytes()) {
		t.Error("the same content gave two archives")
	}
	files := map[string][]byte{}
	for in := tar.NewReader(&first); ; {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			files[h.Name] = text
		}
	}
	var top, index v1.IndexManifest
	if err := json.Unmarshal(files["index.json"], &top); err != nil || len(top.Manifests) != 1 {
		t.Fatalf("%s, %v", files["index.json"], err)
	}
	digest, err := Digest(buildAll(t))
	if m := top.Manifests[0]; err != nil || m.Digest.String() != digest ||
		m.Annotations[annotationName] != "example.test/agent:1" || m.Annotations[annotationTag] != "1" {
		t.Errorf("%+v, %v", m, err)
	}
	blob := func(h v1.Hash, size int64) []byte {
		text := files["blobs/sha256/"+h.Hex]
		if int64(len(text)) != size || fmt.Sprintf("%x", sha256.Sum256(text)) != h.Hex {
			t.Errorf("blob %s has %d bytes, not %d, or other ones", h, len(text), size)
		}
		return text
	}
	if err := json.Unmarshal(blob(top.Manifests[0].Digest, top.Manifests[0].Size), &index); err != nil ||
		len(index.Manifests) != 2 {
		t.Fatalf("%+v, %v", index, err)
	}
	for i, arch := range Architectures {
		m := index.Manifests[i]
		if m.Platform.Architecture != arch || m.MediaType != types.OCIManifestSchema1 {
			t.Errorf("%+v", m)
		}
		var manifest v1.Manifest
		if err := json.Unmarshal(blob(m.Digest, m.Size), &manifest); err != nil {
			t.Fatal(err)
		}
		blob(manifest.Config.Digest, manifest.Config.Size)
		if manifest.Config.MediaType != types.OCIConfigJSON ||
			len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != types.OCILayer {
			t.Errorf("%+v", manifest)
		}
		blob(manifest.Layers[0].Digest, manifest.Layers[0].Size)
	}
	if string(files["oci-layout"]) != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("%q", files["oci-layout"])
	}
	if err := Write(fullDisk{}, "example.test/agent:1", buildAll(t)); err == nil {
		t.Error("a full disk caused no error")
	}
}

// fullDisk is a writer that fails like a full disk.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
