package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/image"
	"github.com/knotmeter/knotmeter/internal/registry"
)

// A release is the input of the files of a release.
type release struct {
	source   string // root directory of the module
	version  string
	snapshot string // time of Debian's packages, such as 20261123T000000Z; empty: now
}

// build returns the files by name.
func (r release) build(ctx context.Context) (map[string][]byte, error) {
	programs, agents, err := r.compileAll(ctx)
	if err != nil {
		return nil, err
	}
	notices, err := r.notices(ctx)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	archives := map[platform]string{}
	for p, program := range programs {
		top := fmt.Sprintf("knotmeter_%s_%s_%s", r.version, p.os, p.arch)
		entries := append([]entry{{"knotmeter", 0o755, program}}, notices...)
		for arch, agent := range agents {
			entries = append(entries, entry{image.AgentFile(arch), 0o755, agent})
		}
		archives[p] = top + ".tar.gz"
		if files[archives[p]], err = archive(top, entries); err != nil {
			return nil, err
		}
	}
	plain, withFio, packages, err := r.images(ctx, agents)
	if err != nil {
		return nil, err
	}
	files["knotmeter-agent_"+r.version+".tar"] = plain
	files["knotmeter-agent-fio_"+r.version+".tar"] = withFio
	parts, err := readParts(programs, agents)
	if err != nil {
		return nil, err
	}
	if files["knotmeter_"+r.version+".cdx.json"], err = billOfMaterials(r.version, parts, packages); err != nil {
		return nil, err
	}
	if files["knotmeter.yaml"], err = krewManifest(r.version, archives, files); err != nil {
		return nil, err
	}
	files[checksumsFile] = checksums(files)
	return files, nil
}

// compileAll compiles the program for each platform, and the agent for each architecture of images.
func (r release) compileAll(ctx context.Context) (programs map[platform][]byte, agents map[string][]byte, err error) {
	programs, agents = map[platform][]byte{}, map[string][]byte{}
	for _, p := range platforms {
		if programs[p], err = r.compile(ctx, "knotmeter", p); err != nil {
			return nil, nil, err
		}
	}
	for _, arch := range image.Architectures {
		if agents[arch], err = r.compile(ctx, "knotmeter-agent", platform{"linux", arch}); err != nil {
			return nil, nil, err
		}
	}
	return programs, agents, nil
}

// images returns the archives of the agent's image for all architectures, without and with fio, and the packages in the
// latter. Both images have the name that the program looks for.
func (r release) images(ctx context.Context, agents map[string][]byte) (plain, fio []byte, used []deb, err error) {
	plainImages, fioImages := map[string]image.Image{}, map[string]image.Image{}
	for _, arch := range image.Architectures {
		files := map[string][]byte{remote.AgentPath: agents[arch]}
		if plainImages[arch], err = image.Build(image.Spec{Arch: arch, Files: files}); err != nil {
			return nil, nil, nil, err
		}
		packages, err := addFio(ctx, files, arch, r.snapshot)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("fio for %s: %w", arch, err)
		}
		used = append(used, packages...)
		if fioImages[arch], err = image.Build(image.Spec{Arch: arch, Files: files}); err != nil {
			return nil, nil, nil, err
		}
	}
	var a, b bytes.Buffer
	if err := image.Write(&a, registry.AgentImage, plainImages); err != nil {
		return nil, nil, nil, err
	}
	err = image.Write(&b, registry.AgentImage, fioImages)
	return a.Bytes(), b.Bytes(), used, err
}

// withTempDir calls run with a temporary directory, and removes that afterwards.
func withTempDir(run func(dir string) error) error {
	dir, err := os.MkdirTemp("", "knotmeter-dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	return run(dir)
}
