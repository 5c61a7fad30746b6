//go:build linux

package probe

import "testing"

func TestFeaturesAreDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Features() {
		if f.Name == "" || f.Use == "" || f.Remedy == "" || f.Try == nil || seen[f.Name] {
			t.Errorf("%q: want a name of its own, a use, a remedy and a way to try it", f.Name)
		}
		seen[f.Name] = true
	}
}
