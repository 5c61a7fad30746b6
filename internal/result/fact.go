package result

import (
	"regexp"
	"slices"
	"strings"
)

// parentheses match the evidence in a text such as "vxlan (config map cilium-config)".
var parentheses = regexp.MustCompile(` \(([^()]*)\)`)

// WithEvidence returns a fact whose evidence stands in parentheses in the text. A text may have several values with an
// evidence each, as different nodes have.
func WithEvidence(name, text string) Fact {
	var evidence []string
	for _, found := range parentheses.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(evidence, found[1]) {
			evidence = append(evidence, found[1])
		}
	}
	return Fact{Name: name, Value: parentheses.ReplaceAllString(text, ""), Evidence: strings.Join(evidence, "; ")}
}

// evident lists the facts that had their evidence in the value before facts had a field for it.
var evident = []string{"cni", "distribution", "encapsulation", "encryption", "kube-proxy", "mesh", "mesh.version",
	MeshIntercepted, "tunnel-mtu", "proxy"}

// ReadFacts replaces facts of a file by what would be written today.
func ReadFacts(facts []Fact) {
	for i, f := range facts {
		facts[i] = f.Read()
	}
}

// Read returns a fact of a file as it is written today. Files of earlier versions have sentences as values, such as
// "none, native routing (config map cilium-config)".
func (f Fact) Read() Fact {
	if f.Evidence != "" || !slices.Contains(evident, f.Name) {
		return f
	}
	value, detail, found := strings.Cut(f.Value, ": ")
	answer, why, _ := strings.Cut(f.Value, " (")
	switch {
	case f.Name == MeshIntercepted:
		return Fact{f.Name, answer, strings.TrimSuffix(why, ")")}
	case f.Name == "tunnel-mtu" && found:
		return Fact{f.Name, value, detail}
	case f.Name == "proxy" && strings.HasPrefix(f.Value, "HAProxy "):
		return Fact{f.Name, "haproxy", f.Value}
	case f.Name == "proxy" && strings.HasPrefix(f.Value, "stand-in in Go"):
		return Fact{f.Name, "hbone", f.Value}
	}
	read := WithEvidence(f.Name, f.Value)
	if f.Name == "encapsulation" || f.Name == "encryption" {
		var values []string
		for part := range strings.SplitSeq(read.Value, " | ") {
			values = append(values, property(part))
		}
		slices.Sort(values)
		read.Value = strings.Join(slices.Compact(values), " | ")
	}
	return read
}

// property returns the value that a sentence of earlier versions meant.
func property(sentence string) string {
	backend, flannel := strings.CutPrefix(sentence, "flannel ")
	tunnel, condition, conditional := strings.Cut(backend, ",")
	base, betweenSubnets := strings.CutSuffix(tunnel, " between subnets")
	direct, isDirect := strings.CutSuffix(backend, " with direct routing")
	switch {
	case flannel && backend == "host-gw":
		return None
	case isDirect:
		return direct + "-cross-subnet"
	case betweenSubnets:
		return base + "-cross-subnet"
	case conditional && condition == " always or between subnets":
		return tunnel + "-maybe-cross-subnet"
	case flannel && !slices.Contains([]string{"vxlan", "udp", "ipip", "wireguard", "ipsec"}, backend):
		return Unknown
	}
	return tunnel // none, native routing; wireguard, between nodes too
}
