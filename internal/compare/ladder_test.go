package compare

import (
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

func TestLadders(t *testing.T) {
	for _, test := range []struct {
		texts []string
		want  []ladder
	}{
		{[]string{"lab:native?rules=500", "lab:native", "lab:native?rules=2000&label=many"}, []ladder{
			{"rules", []string{"lab:native", "lab:native?rules=500", "many"}, []float64{0, 500, 2000}}}},
		{[]string{"lab:native", "lab:vxlan?rules=5", "lab:vxlan", "lab:native?rules=5"}, []ladder{
			{"rules", []string{"lab:native", "lab:native?rules=5"}, []float64{0, 5}},
			{"rules", []string{"lab:vxlan", "lab:vxlan?rules=5"}, []float64{0, 5}}}},
		{[]string{"kube:", "kube:?services=10", "kube:?policies=3"}, []ladder{
			{"services", []string{"kube:", "kube:?services=10"}, []float64{0, 10}},
			{"policies", []string{"kube:", "kube:?policies=3"}, []float64{0, 3}}}},
		{[]string{"lab:native", "lab:native?label=again", "lab:native?mtu=1500"}, nil},
		{[]string{"lab:native", "lab:native?services=bpf"}, nil},
		{[]string{"lab:native?rules=1", "lab:native?rules=1&label=again"}, nil},
	} {
		var specs []result.Spec
		for _, text := range test.texts {
			s, err := result.ParseSpec(text)
			if err != nil {
				t.Fatal(err)
			}
			specs = append(specs, s)
		}
		got := ladders(specs)
		if !slices.EqualFunc(got, test.want, func(a, b ladder) bool {
			return a.Option == b.Option && slices.Equal(a.Targets, b.Targets) && slices.Equal(a.Numbers, b.Numbers)
		}) {
			t.Errorf("%v: %+v, not %+v", test.texts, got, test.want)
		}
	}
}
