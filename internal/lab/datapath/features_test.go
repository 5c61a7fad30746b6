//go:build linux

package datapath

import "testing"

func TestFeaturesAreDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range features {
		if f.Name == "" || f.Use == "" || f.Remedy == "" || f.Try == nil || seen[f.Name] {
			t.Errorf("%q: want a name of its own, a use, a remedy and a way to try it", f.Name)
		}
		seen[f.Name] = true
	}
}
