package target

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPaths(t *testing.T) {
	type properties struct{ Other, Service, ClientPod, ServerPod bool }
	want := map[Path]properties{
		NodeNode:     {Other: true},
		PodNodeSame:  {ClientPod: true},
		PodNodeOther: {Other: true, ClientPod: true},
		PodPodSame:   {ClientPod: true, ServerPod: true},
		PodPodOther:  {Other: true, ClientPod: true, ServerPod: true},
		NodeSvcSame:  {Service: true, ServerPod: true},
		NodeSvcOther: {Other: true, Service: true, ServerPod: true},
		PodSvcSame:   {Service: true, ClientPod: true, ServerPod: true},
		PodSvcOther:  {Other: true, Service: true, ClientPod: true, ServerPod: true},
	}
	got := map[Path]properties{}
	for _, p := range Paths() {
		got[p] = properties{p.Other(), p.Service(), p.ClientPod(), p.ServerPod()}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseSpec(t *testing.T) {
	for text, want := range map[string]Spec{
		"lab:vxlan":                         {Kind: "lab", Name: "vxlan", Options: map[string]string{}},
		"lab:vxlan+wireguard?mtu=9000":      {Kind: "lab", Name: "vxlan+wireguard", Options: map[string]string{"mtu": "9000"}},
		"lab:native?label=a+b&rate=1Gbit/s": {Kind: "lab", Name: "native", Options: map[string]string{"label": "a+b", "rate": "1Gbit/s"}},
		"lab:native?label=a%20b%26c":        {Kind: "lab", Name: "native", Options: map[string]string{"label": "a b&c"}},
		"lab:native?loss=1%&label=1%":       {Kind: "lab", Name: "native", Options: map[string]string{"loss": "1%", "label": "1%"}},
		"lab:native?label=50% of %c3%A9":    {Kind: "lab", Name: "native", Options: map[string]string{"label": "50% of é"}},
		"kube:arn:aws:eks:x/y@z":            {Kind: "kube", Name: "arn:aws:eks:x/y@z", Options: map[string]string{}},
		"kube:":                             {Kind: "kube", Options: map[string]string{}},
		"lab:native?label=":                 {Kind: "lab", Name: "native", Options: map[string]string{"label": ""}},
	} {
		want.Text = text
		got, err := ParseSpec(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}
}

func TestParseSpecErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "kind:name",
		"vxlan":                 "lab:vxlan",
		":vxlan":                "kind:name",
		"lab:vxlan?mtu":         "not key=value",
		"lab:vxlan?=9000":       "not key=value",
		"lab:vxlan?mtu=1&":      "not key=value",
		"lab:vxlan?mtu=1&mtu=2": "mtu is given twice",
	} {
		if _, err := ParseSpec(text); !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v does not say %q", text, err, want)
		}
	}
}

func TestLabel(t *testing.T) {
	for text, want := range map[string]string{"lab:vxlan": "lab:vxlan", "lab:vxlan?mtu=1": "lab:vxlan?mtu=1", "lab:vxlan?label=jumbo": "jumbo", "lab:vxlan?label=": "lab:vxlan?label="} {
		s, err := ParseSpec(text)
		if err != nil || s.Label() != want {
			t.Errorf("the label of %q is %q, %v; wanted %q", text, s.Label(), err, want)
		}
	}
}

func TestOnly(t *testing.T) {
	s, err := ParseSpec("lab:vxlan?mtu=1&label=x&zoo=3&ant=2")
	if err != nil {
		t.Fatal(err)
	}
	known := []string{"rate", "mtu"}
	// Of two unknown options it is always the same that is named, and the caller's list is left alone.
	want := `invalid target: "lab:vxlan?mtu=1&label=x&zoo=3&ant=2": lab targets have no option "ant"; there are label, mtu, rate`
	if err := s.Only(known...); !errors.Is(err, ErrSpec) || err.Error() != want {
		t.Errorf("%v", err)
	}
	if known[0] != "rate" {
		t.Error("Only sorted its caller's list")
	}
	if err := s.Only("mtu", "zoo", "ant"); err != nil {
		t.Error(err)
	}
}

func FuzzParseSpec(f *testing.F) {
	for _, text := range []string{"lab:vxlan?mtu=9000&label=a%20b", "kube:a?b=c?d=e", ":", "a:?", "a:?x=%", "a:b?x=\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSpec(text)
		if err != nil {
			if !errors.Is(err, ErrSpec) {
				t.Errorf("%q: %v is not ErrSpec", text, err)
			}
			return
		}
		if s.Kind == "" || s.Text != text || s.Options == nil || !strings.HasPrefix(text, s.Kind+":"+s.Name) {
			t.Errorf("%q is %+v", text, s)
		}
	})
}

func ExampleParseSpec() {
	s, err := ParseSpec("lab:vxlan?mtu=9000&label=jumbo")
	fmt.Println(s.Kind, s.Name, s.Options["mtu"], s.Label(), err)
	// Output: lab vxlan 9000 jumbo <nil>
}
