package prose

import (
	"slices"
	"strings"
)

// Unprefixed maps names to their part after the kind that all of them share: lab:native and lab:vxlan become native and
// vxlan. If kinds differ, or if a short name would be empty or ambiguous, a kind alone loses its colon, which would
// look like the sentence's own: local: becomes local.
func Unprefixed(names []string) map[string]string {
	short, seen := map[string]string{}, map[string]string{}
	kind := ""
	for _, name := range names {
		head, rest, found := strings.Cut(name, ":")
		if !found || rest == "" || kind != "" && head != kind || seen[rest] != "" && seen[rest] != name {
			return withoutColons(names)
		}
		kind, short[name], seen[rest] = head, rest, name
	}
	return short
}

func withoutColons(names []string) map[string]string {
	short := map[string]string{}
	for _, name := range names {
		short[name] = name
		if bare := strings.TrimSuffix(name, ":"); !slices.Contains(names, bare) {
			short[name] = bare
		}
	}
	return short
}
