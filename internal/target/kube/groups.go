package kube

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/target"
)

// ends are what placements have in common that share pods: where client and server are, or what a client alone is for.
type ends struct {
	alone                       target.Path // empty where there is a server
	clientPod, serverPod, apart bool
}

func endsOf(p target.Path) ends {
	if !p.Network() {
		return ends{alone: p}
	}
	return ends{clientPod: p.ClientPod(), serverPod: p.ServerPod(), apart: p.Other()}
}

// groups are the paths of placements, each once, by the pods that they share.
func groups(placements []target.Placement) [][]target.Path {
	var list [][]target.Path
	for _, p := range placements {
		same := func(g []target.Path) bool { return endsOf(g[0]) == endsOf(p.Path) }
		switch i := slices.IndexFunc(list, same); {
		case i < 0:
			list = append(list, []target.Path{p.Path})
		case !slices.Contains(list[i], p.Path):
			list[i] = append(list[i], p.Path)
		}
	}
	return list
}
