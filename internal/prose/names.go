package prose

import "strings"

// Unprefixed are names by themselves without the kind that all of them begin with: lab:native and lab:vxlan are native
// and vxlan. Names of which one would be empty, or two the same, stay as they are.
func Unprefixed(names []string) map[string]string {
	short, seen := map[string]string{}, map[string]string{}
	kind := ""
	for _, name := range names {
		head, rest, found := strings.Cut(name, ":")
		if !found || rest == "" || kind != "" && head != kind || seen[rest] != "" && seen[rest] != name {
			return themselves(names)
		}
		kind, short[name], seen[rest] = head, rest, name
	}
	return short
}

func themselves(names []string) map[string]string {
	same := map[string]string{}
	for _, name := range names {
		same[name] = name
	}
	return same
}
