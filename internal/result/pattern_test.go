package result

import (
	"regexp"
	"strings"
	"testing"
)

// FuzzMatch compares the patterns with regular expressions.
func FuzzMatch(f *testing.F) {
	for _, s := range [][2]string{
		{"pod-pod/*", "pod-pod/other/tcp-rr"}, {"*", ""}, {"", "x"}, {"*rr", "tcp-rr-loaded"}, {"**a?", "bab"},
		{"pod-pod/*/tcp-rr", "pod-pod/same/tcp-rr"}, {"a*b*c", "aXbYbZc"}, {"*a*a*b", "aaaaaaaaaaaaaaaaaaaa"}, {"[a]", "a"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		strange := func(r rune) bool { return r > 126 || r < ' ' }
		if len(pattern)+len(name) > 200 || strings.ContainsFunc(pattern+name, strange) {
			return
		}
		expression := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
		want := regexp.MustCompile("^" + expression + "$").MatchString(name)
		if got := Match(pattern, name); got != want {
			t.Errorf("Match(%q, %q) = %v, wanted %v", pattern, name, got, want)
		}
	})
}
