//go:build !linux

package preflight

import "github.com/knotmeter/knotmeter/internal/machine"

// volume is what a place has at a path.
func volume(path string) *Volume {
	return &Volume{Facts: machine.Volume(path), Error: "only Linux tells what a volume has"}
}
