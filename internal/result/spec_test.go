package result

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseSpec(t *testing.T) {
	type values = map[string]string
	for text, want := range map[string]Spec{
		"lab:vxlan":                      {Kind: "lab", Name: "vxlan", Options: values{}},
		"lab:vxlan+wireguard?mtu=9000":   {Kind: "lab", Name: "vxlan+wireguard", Options: values{"mtu": "9000"}},
		"lab:native?label=a+b&rate=1G":   {Kind: "lab", Name: "native", Options: values{"label": "a+b", "rate": "1G"}},
		"lab:native?label=a%20b%26c":     {Kind: "lab", Name: "native", Options: values{"label": "a b&c"}},
		"lab:native?loss=1%&label=1%":    {Kind: "lab", Name: "native", Options: values{"loss": "1%", "label": "1%"}},
		"lab:native?label=50% of %c3%A9": {Kind: "lab", Name: "native", Options: values{"label": "50% of é"}},
		"kube:arn:aws:eks:x/y@z":         {Kind: "kube", Name: "arn:aws:eks:x/y@z", Options: values{}},
		"kube:":                          {Kind: "kube", Options: values{}},
		"lab:native?label=":              {Kind: "lab", Name: "native", Options: values{"label": ""}},
	} {
		want.Text = text
		got, err := ParseSpec(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
		if fmt.Sprint(got) != text {
			t.Errorf("%q is printed as %v", text, got)
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
	for text, want := range map[string]string{
		"lab:vxlan": "lab:vxlan", "lab:vxlan?mtu=1": "lab:vxlan?mtu=1",
		"lab:vxlan?label=jumbo": "jumbo", "lab:vxlan?label=": "lab:vxlan?label=",
	} {
		s, err := ParseSpec(text)
		if err != nil || s.Label() != want {
			t.Errorf("the label of %q is %q, %v; wanted %q", text, s.Label(), err, want)
		}
	}
}

func TestSet(t *testing.T) {
	for _, c := range []struct{ text, key, value, want string }{
		{"lab:native", "rate", "1Gbit/s", "lab:native?rate=1Gbit/s"},
		{"lab:native?rate=2Gbit/s&label=a%26b", "rate", "1%", "lab:native?label=a%26b&rate=1%25"},
	} {
		s, err := ParseSpec(c.text)
		if err != nil {
			t.Fatal(err)
		}
		set := s.Set(c.key, c.value)
		if again, err := ParseSpec(set.Text); set.Text != c.want || err != nil || again.Options[c.key] != c.value ||
			s.Text != c.text {
			t.Errorf("%s with %s=%s is %s, %v", c.text, c.key, c.value, set.Text, err)
		}
	}
}

func TestWith(t *testing.T) {
	given := map[string]string{"namespace": "bench", "as": "a&b%c", "label": ""}
	delete(given, "label")
	tests := []struct{ text, want string }{
		{"kube:", "kube:?as=a%26b%25c&namespace=bench&label=kube:"},
		{"kube:x?", "kube:x?as=a%26b%25c&namespace=bench&label=kube:x?"},
		{"kube:x?as=me", "kube:x?as=me&namespace=bench&label=kube:x?as=me"},
		{"kube:?label=mine", "kube:?label=mine&as=a%26b%25c&namespace=bench"},
		{"kube:?namespace=own&as=me", "kube:?namespace=own&as=me"},
	}
	for _, c := range tests {
		s, err := ParseSpec(c.text)
		if err != nil {
			t.Fatal(err)
		}
		label := s.Label()
		with := s.With(given)
		want := strings.ReplaceAll(c.want, "label="+c.text, "label="+escaped(c.text))
		if with.Text != want || with.Label() != label || s.Text != c.text {
			t.Errorf("%s with options is %s (%s), want %s (%s)", c.text, with.Text, with.Label(), want, label)
		}
		again, err := ParseSpec(with.Text)
		if err != nil {
			t.Fatal(err)
		}
		again.Text = with.Text
		if diff := cmp.Diff(with, again); diff != "" || again.Label() != label || again.Name != s.Name {
			t.Errorf("%s is read as %+v, which is not %+v", with.Text, again, with)
		}
	}
	s, _ := ParseSpec("lab:vxlan")
	if got := s.With(nil); got.Text != "lab:vxlan" || got.Label() != "lab:vxlan" {
		t.Errorf("without options it becomes %+v", got)
	}
}

func escaped(text string) string { return strings.ReplaceAll(text, "&", "%26") }

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
