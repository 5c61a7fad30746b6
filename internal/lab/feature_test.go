//go:build linux

package lab_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/result"
)

// TestFeaturesAgreeWithDatapaths checks that datapaths are supported exactly if their features are found.
func TestFeaturesAgreeWithDatapaths(t *testing.T) {
	l := startLab(t, config())
	found, err := l.Features()
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{}
	for _, f := range found {
		t.Log(f)
		answers[f.Name] = f.Answer
		if f.Answer == lab.Unknown {
			t.Errorf("%s", f)
		}
	}
	uses := map[string]string{"vxlan": "vxlan", "macvlan": "macvlan", "ESP": "vxlan+ipsec"}
	for feature, name := range uses {
		err := l.Probe(name, lab.Default(), "pod-pod/other")
		if (err == nil) != (answers[feature] == lab.Yes) || err != nil && !errors.Is(err, result.ErrNotSupported) {
			t.Errorf("%s: %s; lab:%s: %v", feature, answers[feature], name, err)
		}
	}
}

func TestFeaturesInAUserNamespace(t *testing.T) {
	c := config()
	c.UserNamespace = true
	found, err := startLab(t, c).Features()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Log(f)
		bpf := strings.HasPrefix(f.Name, "eBPF")
		if f.Answer == lab.Unknown || bpf && (f.Answer != lab.No || !strings.Contains(f.Reason+f.Remedy, "root")) {
			t.Errorf("%s", f)
		}
	}
}
