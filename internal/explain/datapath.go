package explain

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
)

// certain matches values of properties that hold for each packet between two nodes. Values of several nodes, and those
// of tunnels between subnets alone, do not tell what a path has.
var certain = regexp.MustCompile(`^[a-z0-9]+$`)

// property returns a property of the path on both sides, such as its encapsulation: what was captured on this very
// path, or else what the targets have between pods of two nodes. ok is false if it is not known on one side.
func (e evidence) property(name string) (worse, better string, ok bool) {
	if worse, better, ok = e.fact(name); ok {
		return worse, better, ok
	}
	if worse, better, ok = e.fact(headerFact); ok {
		worse, better = captured(name, worse), captured(name, better)
		return worse, better, worse != result.Unknown && better != result.Unknown
	}
	return e.targetFact(name)
}

// headerFact is the captured header of packets between the nodes, such as "ipv4 udp:8472 vxlan:1 ethernet".
const headerFact = "underlay-header"

// captured returns the value of a property that a captured header shows.
func captured(property, header string) string {
	has := func(word string) bool { return strings.Contains(header, word) }
	sealed := has("wireguard") || has("esp")
	switch {
	case strings.HasPrefix(header, result.Unknown):
		return result.Unknown
	case property == "encryption" && has("wireguard"):
		return "wireguard"
	case property == "encryption" && has("esp"):
		return "ipsec"
	case property == "encryption" && has("tls"):
		return "tls"
	case property == "proxy" && has("tcp:15008"): // the port of HBONE
		return "hbone"
	case property == "encapsulation" && has("vxlan"):
		return "vxlan"
	case property == "encapsulation" && sealed: // what is within cannot be seen
		return result.Unknown
	case property == "encapsulation" && (header == "ipv4" || header == "ipv6"):
		return "ipip"
	}
	return result.None
}

// judgeProperty returns a judge of whether the path has a property on the worse target that it lacks on the other.
func judgeProperty(name string) func(evidence) finding {
	return func(e evidence) finding {
		if f, decided := e.unused(name); decided {
			return f
		}
		worse, better, ok := e.property(name)
		switch {
		case !ok:
			return unobservable("the targets do not tell their " + name)
		case !certain.MatchString(worse) || !certain.MatchString(better):
			return unobservable("whether this path has it is not known: " + worse + "; on the other " + better)
		case worse == result.None || worse == better:
			return finding{state: Contradicted, evidence: []string{worse + "; on the other " + better}}
		}
		return finding{state: Differs, evidence: []string{worse + " instead of " + better}}
	}
}

// unused judges paths of which the targets' facts about packets between pods of two nodes say nothing, unless the
// property of the path itself was captured.
func (e evidence) unused(name string) (f finding, decided bool) {
	_, _, own := e.fact(name)
	_, _, seen := e.fact(headerFact)
	known := slices.Contains(result.Paths(), e.path)
	switch {
	case own || seen || e.path == "":
		return f, false
	case !known:
		return unobservable("it is not known which way the packets of this case take"), true
	case e.path.Same():
		return finding{state: Contradicted, evidence: []string{"the path stays on its node"}}, true
	case e.path == result.NodeNode && name != "encryption":
		return finding{state: Contradicted, evidence: []string{"the path is between the nodes themselves"}}, true
	case !e.path.ServerPod():
		return unobservable("the facts are about packets between pods, and one end is a node"), true
	}
	return f, false
}

// judgeProxy judges whether proxies of a mesh carry the connections of the worse target alone.
func judgeProxy(e evidence) finding {
	worse, better := e.throughMesh()
	mesh, other, known := e.targetFact("mesh")
	switch {
	case worse && better, !worse && (better || known):
		return finding{state: Contradicted, evidence: []string{mesh + "; on the other " + other}}
	case worse:
		who := "a mesh"
		if mesh != result.Unknown {
			who = cmp.Or(mesh, who)
		}
		return finding{state: Differs, evidence: []string{who + " took over the connections"}}
	}
	return judgeProperty("proxy")(e)
}

// throughMesh reports whether a service mesh took over the connections of all runs of each side.
func (e evidence) throughMesh() (worse, better bool) {
	all := func(side func(pair) *result.Run) bool {
		other := func(p pair) bool { return !side(p).ThroughMesh() }
		return len(e.pairs) > 0 && !slices.ContainsFunc(e.pairs, other)
	}
	return all(func(p pair) *result.Run { return p.worse }), all(func(p pair) *result.Run { return p.better })
}
