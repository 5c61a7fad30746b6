package explain

import (
	"strings"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A setting that differs may help, harm or do nothing. The functions of this file return the measurements that show
// that it slows the worse target, as clauses; none if nothing shows it.

// perPacket lists the layers whose work grows with the number of packets.
var perPacket = []string{"ip", "bridge", "veth", "qdisc", "driver", "softirq"}

// layersCost returns a function that looks for more CPU time in layers, at least the given share of all that the worse
// target needs more.
func layersCost(least float64, layers ...string) func(evidence) []string {
	return func(e evidence) []string {
		if e.cost == "" || e.hasIdleCPU() {
			return nil
		}
		whole, ok := e.kernelCost()
		if !ok || whole.state(1, leastCost*whole.better) != Supported {
			return nil
		}
		d, ok := e.pairedDifference(strings.Join(layers, ", "), unit.Second, func(r *result.Run) (sum float64, ok bool) {
			for _, layer := range layers {
				v, _ := r.Value(metric.OfLayer(e.cost, layer))
				sum += v.Number
			}
			_, ok = sampledCPUTime(r, e.cost)
			return sum, ok
		})
		if !ok || d.lo <= 0 || d.estimate < least*whole.estimate {
			return nil
		}
		return []string{"CPU time of " + d.subject + " " + d.change()}
	}
}

// anyOf returns a function that returns the evidence of the first judge that supports its cause.
func anyOf(judges ...func(evidence) finding) func(evidence) []string {
	return func(e evidence) []string {
		for _, judge := range judges {
			if f := judge(e); f.state == Supported {
				return f.evidence
			}
		}
		return nil
	}
}

// encryptionCosts looks for the work of ciphers, in the kernel or in a program that encrypts.
func encryptionCosts(e evidence) []string {
	worse, _, _ := e.property("encryption")
	how := e.worseFact("wireguard")
	look := layersCost(leastLayer, "crypto")
	if worse == "tls" || how != "" && how != "kernel" {
		look = anyOf(judgePrograms, judgeLayer(inUserSpace, leastLayer))
	}
	shown := look(e)
	if d, ok := e.metricDifference(metric.CPUBusiest); ok && len(shown) > 0 && d.worse >= fullCPU {
		shown = append(shown, "one CPU is full, so that more flows may carry more")
	}
	return shown
}

// tunnelLayers lists the layers in which tunnels work. Packets in a tunnel pass IP twice.
var tunnelLayers = map[string][]string{
	"vxlan": {"vxlan", "udp", "ip"}, "geneve": {"vxlan", "udp", "ip"}, "fou": {"vxlan", "udp", "ipip", "ip"},
	"ipip": {"ipip", "ip"}, "wireguard": {"crypto"}, "ipsec": {"crypto"},
}

// encapsulationCosts looks for the work of the worse target's tunnel.
func encapsulationCosts(e evidence) []string {
	worse, _, _ := e.property("encapsulation")
	layers := tunnelLayers[worse]
	if how := e.worseFact("ipip"); worse == "ipip" && how == "eBPF" {
		layers = []string{"ebpf"}
	}
	if layers == nil {
		return anyOf(judgePrograms)(e) // a tunnel in user space
	}
	return layersCost(leastLayer, layers...)(e)
}

// oneCPUIsFull looks for a full CPU on the worse target, where the better one had the time of more than one.
func oneCPUIsFull(e evidence) []string {
	busiest, ok1 := e.metricDifference(metric.CPUBusiest)
	used, ok2 := e.metricDifference(metric.CPUAgents)
	if !ok1 || !ok2 || busiest.worse < fullCPU || used.state(-1, leastSoftIRQ) != Supported {
		return nil
	}
	used.subject = "CPUs that the two ends used"
	return []string{"the CPU is full; " + used.String()}
}
