package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/knotmeter/knotmeter/internal/image"
)

// A part is a program of a release, with its build information.
type part struct {
	name     string
	platform platform
	digest   string
	info     *buildinfo.BuildInfo
}

// readParts reads the build information of the programs.
func readParts(programs map[platform][]byte, agents map[string][]byte) ([]part, error) {
	var parts []part
	add := func(name string, p platform, program []byte) error {
		info, err := buildinfo.Read(bytes.NewReader(program))
		parts = append(parts, part{name, p, digest(program), info})
		return err
	}
	for _, p := range platforms {
		if err := add("knotmeter", p, programs[p]); err != nil {
			return nil, err
		}
	}
	for _, arch := range image.Architectures {
		if err := add("knotmeter-agent", platform{"linux", arch}, agents[arch]); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// billOfMaterials returns a CycloneDX document in JSON: the programs, the modules in each, and the Debian packages of
// the image with fio.
func billOfMaterials(version string, parts []part, packages []deb) ([]byte, error) {
	product := cdx.Component{
		Type: cdx.ComponentTypeApplication, Name: "knotmeter", Version: version, BOMRef: "knotmeter",
		PackageURL: golangURL("github.com/knotmeter/knotmeter", version),
	}
	bill := inventory{components: map[string]cdx.Component{}, dependencies: map[string][]string{}}
	for _, p := range parts {
		bill.addPart(version, p)
	}
	for _, p := range packages {
		bill.addPackage(p)
	}
	b := cdx.NewBOM()
	b.Metadata = &cdx.Metadata{Component: &product}
	components, dependencies := bill.sorted()
	b.Components, b.Dependencies = &components, &dependencies
	var out bytes.Buffer
	err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(b, cdx.SpecVersion1_6)
	return out.Bytes(), err
}

// An inventory has components by reference, and for each the references of its own components.
type inventory struct {
	components   map[string]cdx.Component
	dependencies map[string][]string
}

func (i inventory) add(parent string, c cdx.Component) {
	i.components[c.BOMRef] = c
	i.dependencies[parent] = append(i.dependencies[parent], c.BOMRef)
}

func (i inventory) addPart(version string, p part) {
	ref := fmt.Sprintf("%s/%s/%s", p.name, p.platform.os, p.platform.arch)
	i.add("knotmeter", cdx.Component{
		Type: cdx.ComponentTypeApplication, BOMRef: ref, Name: p.name, Version: version, Hashes: sha256Of(p.digest),
		Description: fmt.Sprintf("program for %s/%s", p.platform.os, p.platform.arch),
	})
	i.add(ref, library("std", strings.TrimPrefix(p.info.GoVersion, "go")))
	for _, m := range p.info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		i.add(ref, library(m.Path, m.Version))
	}
}

func (i inventory) addPackage(p deb) {
	ref := "knotmeter-agent-fio/linux/" + p.image
	if _, found := i.components[ref]; !found {
		i.add("knotmeter", cdx.Component{Type: cdx.ComponentTypeContainer, BOMRef: ref, Name: "knotmeter-agent-fio",
			Description: "image of the agent with fio for linux/" + p.image})
		i.dependencies[ref] = []string{"knotmeter-agent/linux/" + p.image}
	}
	purl := fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s&distro=%s", p.name, url.QueryEscape(p.version), p.arch, suite)
	i.add(ref, cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: purl, Name: p.name, Version: p.version,
		PackageURL: purl, Hashes: sha256Of(p.digest)})
}

// sorted returns components and dependencies in the order of their references.
func (i inventory) sorted() ([]cdx.Component, []cdx.Dependency) {
	var components []cdx.Component
	for _, ref := range slices.Sorted(maps.Keys(i.components)) {
		components = append(components, i.components[ref])
	}
	var dependencies []cdx.Dependency
	for _, ref := range slices.Sorted(maps.Keys(i.dependencies)) {
		refs := slices.Sorted(slices.Values(i.dependencies[ref]))
		dependencies = append(dependencies, cdx.Dependency{Ref: ref, Dependencies: &refs})
	}
	return components, dependencies
}

func library(module, version string) cdx.Component {
	purl := golangURL(module, version)
	return cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: purl, Name: module, Version: version, PackageURL: purl}
}

func golangURL(module, version string) string {
	return "pkg:golang/" + module + "@" + url.QueryEscape(version)
}

func sha256Of(digest string) *[]cdx.Hash {
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: digest}}
}
