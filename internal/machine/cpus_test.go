package machine

import (
	"slices"
	"testing"
)

func TestParseCPUs(t *testing.T) {
	for text, want := range map[string][]int{"0\n": {0}, "0-2,5": {0, 1, 2, 5}, "": nil, "3-1": nil, "0-99999": nil} {
		if got, err := ParseCPUs(text); !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func FuzzParseCPUs(f *testing.F) {
	f.Add("0-3,8")
	f.Fuzz(func(t *testing.T, text string) {
		if list, err := ParseCPUs(text); (err == nil) != (len(list) > 0) {
			t.Errorf("%v, %v", list, err)
		}
	})
}
