package kube

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/target"
)

// ends are what placements have in common that share pods: where client and server are, or what a client alone has.
type ends struct {
	clientPod, serverPod, apart  bool
	alone, hasVolume, asksServer bool
}

func endsOf(p target.Placement) ends {
	if p.Path == "" {
		return ends{alone: true, hasVolume: p.Volume, asksServer: p.AsksAPI()}
	}
	return ends{clientPod: p.Path.ClientPod(), serverPod: p.Path.ServerPod(), apart: p.Path.Other()}
}

// groups are placements by the pods that they share.
func groups(placements []target.Placement) [][]target.Placement {
	var list [][]target.Placement
	for _, p := range placements {
		i := slices.IndexFunc(list, func(g []target.Placement) bool { return endsOf(g[0]) == endsOf(p) })
		if i < 0 {
			list = append(list, nil)
			i = len(list) - 1
		}
		list[i] = append(list[i], p)
	}
	return list
}
