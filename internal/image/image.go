// Package image makes the container image that the agent runs from in pods: the agent's program, and other
// tools if they are asked for, in one layer, without Docker. The command line fills in what goes into it;
// a target only knows its name. It is the only door to the library for images.
//
// The same content gives the same digest, on any day and any machine.
package image

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	registry "github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/knotmeter/knotmeter/internal/host/remote"
)

// user is who runs the agent, unless the cluster says otherwise: not root.
const user = "65532:65532"

// searchPath is where programs of the image are found by name.
const searchPath = "/usr/bin:/usr/sbin:/bin:/sbin:/"

// Architectures are those that images are made for.
func Architectures() []string { return []string{"amd64", "arm64"} }

// An Image is one that was made.
type Image = v1.Image

// A Spec is what an image is made from.
type Spec struct {
	Arch  string            // one of Architectures
	Files map[string][]byte // by absolute path; remote.AgentPath must be among them. All can be executed
}

// Build makes the image. Its only error is about the content.
func Build(s Spec) (Image, error) {
	if !slices.Contains(Architectures(), s.Arch) {
		return nil, fmt.Errorf("no images are made for %q, only for %s", s.Arch, strings.Join(Architectures(), ", "))
	}
	if len(s.Files[remote.AgentPath]) == 0 {
		return nil, errors.New("the image would have no agent")
	}
	content, err := layer(s.Files)
	if err != nil {
		return nil, err
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(empty.Image, l)
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

// layer is the archive of the files, with nothing in it that depends on when or where it is made.
func layer(files map[string][]byte) ([]byte, error) {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	for _, dir := range directories(files) {
		h := &tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: time.Unix(0, 0)}
		if dir == "tmp" {
			h.Mode = 0o1777
		}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(name, "/"), Size: int64(len(files[name])), Mode: 0o755, ModTime: time.Unix(0, 0)}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(files[name]); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), t.Close()
}

// directories are those of the files, parents first, and one for temporary files.
func directories(files map[string][]byte) []string {
	seen := map[string]bool{"tmp": true}
	for name := range files {
		for dir := path.Dir(strings.TrimPrefix(name, "/")); dir != "."; dir = path.Dir(dir) {
			seen[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Write writes an image as an archive that every container runtime imports, as `docker save` does.
func Write(w io.Writer, reference string, img Image) error {
	tag, err := name.NewTag(reference)
	if err != nil {
		return err
	}
	return tarball.Write(tag, img, w)
}

// Push sends images to a registry, of several architectures as one, with the credentials that docker login has
// stored. It returns the reference with its digest.
func Push(ctx context.Context, reference string, images map[string]Image, insecure bool) (string, error) {
	var options []name.Option
	if insecure {
		options = append(options, name.Insecure)
	}
	ref, err := name.ParseReference(reference, options...)
	if err != nil {
		return "", err
	}
	send := []registry.Option{registry.WithContext(ctx), registry.WithAuthFromKeychain(authn.DefaultKeychain), registry.WithUserAgent("knotmeter")}
	if len(images) == 1 {
		for _, img := range images {
			if err := registry.Write(ref, img, send...); err != nil {
				return "", fmt.Errorf("push %s: %w", reference, err)
			}
			digest, err := img.Digest()
			return ref.Context().Digest(digest.String()).String(), err
		}
	}
	index := v1.ImageIndex(empty.Index)
	for _, arch := range slices.Sorted(maps.Keys(images)) {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: images[arch], Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	if err := registry.WriteIndex(ref, index, send...); err != nil {
		return "", fmt.Errorf("push %s: %w", reference, err)
	}
	digest, err := index.Digest()
	return ref.Context().Digest(digest.String()).String(), err
}

// machines are the architectures as program files name them.
func machines() map[string]elf.Machine {
	return map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
}

// CheckAgent says why a program can not be the agent of an image for arch: it must be for Linux there, and need no libraries.
func CheckAgent(program []byte, arch string) error {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return fmt.Errorf("it is no program for Linux: %w", err)
	}
	defer f.Close()
	if f.Machine != machines()[arch] {
		return fmt.Errorf("it is a program for %v, not for %s", f.Machine, arch)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("it needs shared libraries; build it with CGO_ENABLED=0")
		}
	}
	return nil
}
