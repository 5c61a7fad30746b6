package main

import (
	"bytes"
	_ "embed"
	"strings"
	"text/template"

	"golang.org/x/mod/semver"
)

//go:embed krew.yaml.tmpl
var krewText string

var krewTemplate = template.Must(template.New("krew").Parse(krewText))

// krewManifest returns the manifest from which kubectl's plugin manager installs the archives of the platforms.
func krewManifest(version string, archives map[platform]string, files map[string][]byte) ([]byte, error) {
	type download struct{ OS, Arch, Top, Archive, Sum string }
	data := struct {
		Version, Tag string
		Platforms    []download
	}{semanticVersion(version), version, nil}
	for _, p := range platforms {
		name := archives[p]
		data.Platforms = append(data.Platforms,
			download{p.os, p.arch, strings.TrimSuffix(name, ".tar.gz"), name, digest(files[name])})
	}
	var b bytes.Buffer
	err := krewTemplate.Execute(&b, data)
	return b.Bytes(), err
}

// semanticVersion returns a version that the plugin manager accepts. A version that is no tag becomes one that precedes
// all releases.
func semanticVersion(version string) string {
	if semver.IsValid(version) {
		return version
	}
	return "v0.0.0-g" + version
}
