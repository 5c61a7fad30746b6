package registry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

// TestOptionsAsListed creates a target with each option as `list targets` and the pages show it.
func TestOptionsAsListed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	own := strings.NewReplacer("FILE", file, "NAMESPACE", "namespace", "NAME", "name", "REF",
		"registry.example/agent:1", "UID", "7", "URL", "https://a.example:8200", "HOST:PORT", "a.example:8200", ",…", "")
	for _, k := range Kinds() {
		names := []string{k.Example}
		place, _, _ := strings.Cut(strings.ReplaceAll(k.Example, "production", ""), "?")
		for _, o := range k.Options {
			if o.Refused != nil {
				continue
			}
			text := place + "?" + own.Replace(o.String())
			switch {
			case o.Needs != "" && !strings.Contains(o.Needs, "="):
				text += "&" + o.Needs + "=other"
			case o.Needs != "":
				text += "&" + o.Needs
			case o.Name == "inject":
				text += "&image=registry.example/agent:1"
			}
			names = append(names, text)
		}
		for _, text := range names {
			spec, err := result.ParseSpec(text)
			if err != nil {
				t.Error(err)
				continue
			}
			made, err := k.New(spec)
			if err != nil {
				t.Error(err)
				continue
			}
			if err := made.Close(); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}
