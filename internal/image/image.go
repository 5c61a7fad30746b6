// Package image builds the container image of the agent's program and other tools, without Docker: all files are in one
// layer. The command line chooses the content; targets only know the image's name. No other package uses the image
// library.
//
// The same content gives the same digest on any day and any machine.
package image

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	registry "github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/knotmeter/knotmeter/internal/host/remote"
)

// user is the user ID and group ID that run the agent unless the cluster sets others.
const user = "65532:65532"

// searchPath is the PATH of the image's programs.
const searchPath = "/usr/bin:/usr/sbin:/bin:/sbin:/"

// Architectures are the architectures that images are built for.
var Architectures = []string{"amd64", "arm64"}

// An Image is a container image.
type Image = v1.Image

// A Spec is the content of an image.
type Spec struct {
	Arch  string            // one of Architectures
	Files map[string][]byte // by absolute path, all executable; must have remote.AgentPath
}

// Build builds the image. Errors are about the content.
func Build(s Spec) (Image, error) {
	if !slices.Contains(Architectures, s.Arch) {
		return nil, fmt.Errorf("no images are made for %q, only for %s", s.Arch, strings.Join(Architectures, ", "))
	}
	if len(s.Files[remote.AgentPath]) == 0 {
		return nil, errors.New("the image would have no agent")
	}
	content, err := layer(s.Files)
	if err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	l, err := tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(gzip.BestCompression))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.AppendLayers(base, l)
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Architecture, file.OS = s.Arch, "linux"
	file.Config = v1.Config{User: user, Entrypoint: []string{remote.AgentPath}, Env: []string{"PATH=" + searchPath}}
	return mutate.ConfigFile(img, file)
}

// temporary is the directory for temporary files, writable by every user.
const temporary = "tmp"

// layer returns the tar archive of the files and of the directory for temporary files.
func layer(files map[string][]byte) ([]byte, error) {
	dirs := append(directories(files), temporary)
	slices.Sort(dirs)
	var b bytes.Buffer
	err := writeTar(&b, slices.Compact(dirs), files, 0o755)
	return b.Bytes(), err
}

// directories returns the directories of the files, parents first.
func directories(files map[string][]byte) []string {
	seen := map[string]bool{}
	for name := range files {
		for dir := path.Dir(strings.TrimPrefix(name, "/")); dir != "."; dir = path.Dir(dir) {
			seen[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Digest returns the digest that references to the images pin: that of a single image, or of the index of several.
func Digest(images map[string]Image) (string, error) {
	if len(images) == 1 {
		for _, img := range images {
			digest, err := img.Digest()
			return digest.String(), err
		}
	}
	digest, err := newIndex(images).Digest()
	return digest.String(), err
}

// CompressedSize returns the size of an image's compressed layers in bytes.
func CompressedSize(img Image) (int64, error) {
	layers, err := img.Layers()
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, l := range layers {
		size, err := l.Size()
		if err != nil {
			return 0, err
		}
		sum += size
	}
	return sum, nil
}

// newIndex returns an index of images for several architectures.
func newIndex(images map[string]Image) v1.ImageIndex {
	all := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range slices.Sorted(maps.Keys(images)) {
		all = mutate.AppendManifests(all, mutate.IndexAddendum{Add: images[arch],
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	return all
}

// Push sends images to a registry, several as one index, with the credentials that docker login has stored. With
// insecure, plain HTTP is allowed and certificates are not checked. It returns the reference with its digest.
func Push(ctx context.Context, reference string, images map[string]Image, insecure bool) (string, error) {
	if !insecure {
		return push(ctx, reference, images, onlyHTTPS{registry.DefaultTransport})
	}
	unchecked := http.DefaultTransport.(*http.Transport).Clone()
	unchecked.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	return push(ctx, reference, images, unchecked, name.Insecure)
}

// An onlyHTTPS transport refuses plain HTTP, to which the library falls back for private and loopback addresses and for
// names that end in .local, and which a redirection or a token's realm may request.
type onlyHTTPS struct{ http.RoundTripper }

// errPlain is returned instead of a request over plain HTTP.
var errPlain = errors.New("plain HTTP is not used without --insecure")

func (t onlyHTTPS) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, fmt.Errorf("%s: %w", r.URL.Host, errPlain)
	}
	return t.RoundTripper.RoundTrip(r)
}

func push(ctx context.Context, reference string, images map[string]Image,
	by http.RoundTripper, options ...name.Option) (string, error) {
	send := []registry.Option{
		registry.WithContext(ctx), registry.WithAuthFromKeychain(authn.DefaultKeychain),
		registry.WithUserAgent("knotmeter"), registry.WithTransport(by),
	}
	ref, err := name.ParseReference(reference, options...)
	if err != nil {
		return "", err
	}
	if err := pushImages(ref, images, send); err != nil {
		return "", fmt.Errorf("push %s: %w%s", reference, err, pushRemedy(err))
	}
	digest, err := Digest(images)
	return ref.Context().Digest(digest).String(), err
}

func pushImages(ref name.Reference, images map[string]Image, send []registry.Option) error {
	if len(images) != 1 {
		return registry.WriteIndex(ref, newIndex(images), send...)
	}
	for _, img := range images {
		if err := registry.Write(ref, img, send...); err != nil {
			return err
		}
	}
	return nil
}

// pushRemedy returns advice on an error of a registry, as the end of the error's text; "" if there is none.
func pushRemedy(err error) string {
	var refused *transport.Error
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &refused) && (refused.StatusCode == http.StatusUnauthorized ||
		refused.StatusCode == http.StatusForbidden):
		return "; 'docker login' or 'podman login' stores the credentials that the registry asks for"
	case errors.As(err, &unknown):
		return "; name the authority of the certificate in SSL_CERT_FILE, or give --insecure"
	}
	return ""
}
