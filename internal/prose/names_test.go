package prose

import (
	"maps"
	"testing"
)

func TestUnprefixed(t *testing.T) {
	for _, want := range []map[string]string{
		{"lab:native": "native", "lab:vxlan": "vxlan"},
		{"lab:native": "lab:native", "kube:one": "kube:one"},
		{"local:": "local", "quota": "quota"},
		{"local:": "local:", "local": "local"},
		{"lab:": "lab", "lab:vxlan": "lab:vxlan"},
	} {
		var names []string
		for name := range want {
			names = append(names, name)
		}
		if got := Unprefixed(names); !maps.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
