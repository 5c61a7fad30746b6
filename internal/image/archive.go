package image

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Write writes images, by architecture, as an archive that container runtimes import: a single image in the format of
// `docker save`, which every runtime imports, and several as an OCI layout with one index.
func Write(w io.Writer, reference string, images map[string]Image) error {
	tag, err := name.NewTag(reference)
	if err != nil {
		return err
	}
	if len(images) != 1 {
		return writeLayout(w, tag, images)
	}
	for _, img := range images {
		err = tarball.Write(tag, img, w)
	}
	return err
}

// Annotations that name the image of an OCI layout: its full name for containerd, and its tag.
const (
	annotationName = "io.containerd.image.name"
	annotationTag  = "org.opencontainers.image.ref.name"
)

// writeLayout writes an OCI image layout (https://github.com/opencontainers/image-spec/blob/main/image-layout.md)
// as a tar archive.
func writeLayout(w io.Writer, tag name.Tag, images map[string]Image) error {
	whole := newIndex(images)
	blobs := map[string][]byte{}
	for _, arch := range slices.Sorted(maps.Keys(images)) {
		if err := addBlobs(blobs, images[arch]); err != nil {
			return fmt.Errorf("linux/%s: %w", arch, err)
		}
	}
	text, err := whole.RawManifest()
	if err != nil {
		return err
	}
	digest, err := whole.Digest()
	if err != nil {
		return err
	}
	media, err := whole.MediaType()
	if err != nil {
		return err
	}
	blobs[digest.Hex] = text
	top, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: media, Manifests: []v1.Descriptor{{
		MediaType: media, Size: int64(len(text)), Digest: digest,
		Annotations: map[string]string{annotationName: tag.Name(), annotationTag: tag.TagStr()},
	}}})
	if err != nil {
		return err
	}
	files := map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`), "index.json": top}
	for hex, content := range blobs {
		files["blobs/sha256/"+hex] = content
	}
	return writeTar(w, directories(files), files, 0o644)
}

// addBlobs adds the manifest, the configuration and the layers of an image, by digest.
func addBlobs(blobs map[string][]byte, img Image) error {
	text, err := img.RawManifest()
	if err != nil {
		return err
	}
	digest, err := img.Digest()
	if err != nil {
		return err
	}
	config, err := img.RawConfigFile()
	if err != nil {
		return err
	}
	id, err := img.ConfigName()
	if err != nil {
		return err
	}
	blobs[digest.Hex], blobs[id.Hex] = text, config
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	for _, l := range layers {
		digest, err := l.Digest()
		if err != nil {
			return err
		}
		in, err := l.Compressed()
		if err != nil {
			return err
		}
		content, err := io.ReadAll(in)
		if err := errors.Join(err, in.Close()); err != nil {
			return err
		}
		blobs[digest.Hex] = content
	}
	return nil
}

// writeTar writes directories and then files, sorted by name, with fixed times and owners, so that equal content gives
// equal archives.
func writeTar(w io.Writer, dirs []string, files map[string][]byte, mode int64) error {
	t := tar.NewWriter(w)
	for _, dir := range dirs {
		h := &tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: time.Unix(0, 0)}
		if dir == temporary {
			h.Mode = 0o1777
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(name, "/"),
			Size: int64(len(files[name])), Mode: mode, ModTime: time.Unix(0, 0)}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(files[name]); err != nil {
			return err
		}
	}
	return t.Close()
}

// Read reads the images, by architecture, of an archive that Write wrote. They read from the archive or from files in
// dir, which must remain as long as the images are used.
func Read(archive, dir string) (map[string]Image, error) {
	if img, err := tarball.ImageFromPath(archive, nil); err == nil {
		return byArchitecture(img)
	}
	if err := unpack(archive, dir); err != nil {
		return nil, fmt.Errorf("%s: %w", archive, err)
	}
	images, err := readLayout(dir)
	if err != nil {
		return nil, fmt.Errorf("%s is no archive of images: %w", archive, err)
	}
	return byArchitecture(images...)
}

// readLayout reads the images of an OCI layout with one index.
func readLayout(dir string) ([]Image, error) {
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	list, err := top.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(list.Manifests) != 1 {
		return nil, fmt.Errorf("it has %d indexes, want 1", len(list.Manifests))
	}
	whole, err := top.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		return nil, err
	}
	if list, err = whole.IndexManifest(); err != nil {
		return nil, err
	}
	var images []Image
	for _, m := range list.Manifests {
		img, err := whole.Image(m.Digest)
		if err != nil {
			return nil, err
		}
		images = append(images, img)
	}
	return images, nil
}

func byArchitecture(images ...Image) (map[string]Image, error) {
	byArch := map[string]Image{}
	for _, img := range images {
		file, err := img.ConfigFile()
		if err != nil {
			return nil, err
		}
		byArch[file.Architecture] = img
	}
	return byArch, nil
}

// unpack extracts the regular files of an archive into dir. A path outside of dir is an error.
func unpack(archive, dir string) error {
	in, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer in.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for t := tar.NewReader(in); ; {
		h, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		text, err := io.ReadAll(t)
		if err := errors.Join(err, root.MkdirAll(path.Dir(h.Name), 0o700)); err != nil {
			return err
		}
		if err := root.WriteFile(h.Name, text, 0o600); err != nil {
			return err
		}
	}
}
