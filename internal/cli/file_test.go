package cli

import (
	"reflect"
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/registry"
)

// TestFileFields checks that an experiment file has the fields of the tables of flags and options, in their order, and
// no others.
func TestFileFields(t *testing.T) {
	type field struct{ name, flag string }
	fields := func(of reflect.Type) (list []field) {
		for f := range of.Fields() {
			list = append(list, field{f.Tag.Get("json"), f.Tag.Get("flag")})
		}
		return list
	}
	want := []field{{"apiVersion", ""}, {"kind", ""}}
	for _, s := range settings {
		if s.field != "" {
			want = append(want, field{s.field, s.flag})
		}
	}
	want = append(want, field{"kubernetes", ""})
	if got := fields(reflect.TypeFor[experimentFile]()); !slices.Equal(got, want) {
		t.Errorf("the fields are\n%v, those of the settings\n%v", got, want)
	}
	kube, err := registry.FindKind("kube")
	if err != nil {
		t.Fatal(err)
	}
	want = nil
	for _, o := range kube.Options {
		if o.Field != "" {
			want = append(want, field{o.Field, o.Name})
		}
	}
	if got := fields(reflect.TypeFor[kubernetesSection]()); !slices.Equal(got, want) {
		t.Errorf("the fields of kubernetes are\n%v, those of its options\n%v", got, want)
	}
}

// fieldOf returns the field with a name in files.
func fieldOf(of reflect.Type, name string) (reflect.StructField, bool) {
	return of.FieldByNameFunc(func(goName string) bool {
		f, _ := of.FieldByName(goName)
		return f.Tag.Get("json") == name
	})
}
