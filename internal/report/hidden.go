package report

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
)

// Names of nodes are those of Kubernetes, in which dots and dashes are parts of a name.
var (
	nodeName = regexp.MustCompile(`[A-Za-z0-9][A-Za-z0-9.-]*[A-Za-z0-9]`)
	address  = regexp.MustCompile(`\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}`)
)

// HideNodes replaces the names of nodes in a rendered report by node-1, node-2 …, and IP addresses by address-1 …,
// except those of loopback devices.
func HideNodes(in Input, text string) string {
	names := nodeNames(in)
	text = nodeName.ReplaceAllStringFunc(text, func(found string) string {
		if i := slices.Index(names, found); i >= 0 {
			return fmt.Sprintf("node-%d", i+1)
		}
		return found
	})
	var seen []string
	return address.ReplaceAllStringFunc(text, func(found string) string {
		a, err := netip.ParseAddr(found)
		if err != nil || a.IsLoopback() || a.IsUnspecified() {
			return found
		}
		if !slices.Contains(seen, found) {
			seen = append(seen, found)
		}
		return fmt.Sprintf("address-%d", slices.Index(seen, found)+1)
	})
}

// nodeNames returns the names of the nodes in the facts of runs and targets, sorted. The ends of a run are NODE or
// NODE/ROLE.
func nodeNames(in Input) []string {
	var names []string
	add := func(facts []result.Fact) {
		for _, f := range facts {
			switch f.Name {
			case "client", "server":
				node, _, _ := strings.Cut(f.Value, "/")
				names = append(names, node)
			case "vault.nodes":
				names = append(names, strings.Split(f.Value, ", ")...)
			}
		}
	}
	for _, r := range in.Runs {
		add(r.Facts)
	}
	for _, facts := range in.Facts {
		add(facts)
	}
	slices.Sort(names)
	return slices.Compact(slices.DeleteFunc(names, func(name string) bool {
		return name == result.Unknown || nodeName.FindString(name) != name
	}))
}
