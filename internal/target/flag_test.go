package target

import (
	"slices"
	"strings"
	"testing"
)

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
		if again.Label() != label || again.Name != s.Name || again.Options["namespace"] != with.Options["namespace"] || again.Options["as"] != with.Options["as"] {
			t.Errorf("%s is read as %+v, which is not %+v", with.Text, again, with)
		}
	}
	s, _ := ParseSpec("lab:vxlan")
	if got := s.With(nil); got.Text != "lab:vxlan" || got.Label() != "lab:vxlan" {
		t.Errorf("without options it becomes %+v", got)
	}
}

func escaped(text string) string { return strings.ReplaceAll(text, "&", "%26") }

func FuzzList(f *testing.F) {
	f.Add("a", "b,c", `\`)
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if list := []string{a, b, c}; !slices.Equal(SplitList(JoinList(list)), list) {
			t.Errorf("%q becomes %q", list, SplitList(JoinList(list)))
		}
	})
}
