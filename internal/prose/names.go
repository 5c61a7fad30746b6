package prose

import "strings"

// Unprefixed maps names to their part after the kind that all of them share: lab:native and lab:vxlan become native and
// vxlan. All names stay unchanged if kinds differ, or if a short name would be empty or ambiguous.
func Unprefixed(names []string) map[string]string {
	short, seen := map[string]string{}, map[string]string{}
	kind := ""
	for _, name := range names {
		head, rest, found := strings.Cut(name, ":")
		if !found || rest == "" || kind != "" && head != kind || seen[rest] != "" && seen[rest] != name {
			return unchanged(names)
		}
		kind, short[name], seen[rest] = head, rest, name
	}
	return short
}

func unchanged(names []string) map[string]string {
	same := map[string]string{}
	for _, name := range names {
		same[name] = name
	}
	return same
}
