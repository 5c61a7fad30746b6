package registry

import (
	"errors"
	"fmt"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/bpf"
	"github.com/knotmeter/knotmeter/internal/lab/cgroup"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/bridge"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/host"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/hostdevice"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/ipip"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/ipsec"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/ipvlan"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/macvlan"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/native"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/vxlan"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/wireguard"
	"github.com/knotmeter/knotmeter/internal/lab/nft"
	"github.com/knotmeter/knotmeter/internal/lab/probe"
	"github.com/knotmeter/knotmeter/internal/target"
)

// Kit is what labs are built from.
func Kit() lab.Kit {
	return lab.Kit{
		Datapaths: []lab.Datapath{
			host.New(), native.New(), vxlan.New(), ipip.New(), bridge.New(), macvlan.New(), ipvlan.New(), hostdevice.New(),
			wireguard.Native(), wireguard.VXLAN(), ipsec.Native(), ipsec.VXLAN(),
		},
		Services: []lab.Services{nft.Services{}, bpf.Connect{}},
		Features: probe.Features(),
	}
}

// clean removes the control groups that are left where a lab's holder itself was killed. Those of labs that run are locked.
func clean(how target.Cleaning) ([]string, error) {
	return cgroup.Clean(func(dir string) bool { return how.Takes(dir, "") })
}

// features tries what the kernel has, where sites are made.
func features() ([]string, error) {
	l, err := lab.Start(labConfig())
	if err != nil {
		return nil, err
	}
	found, err := l.Features()
	var lines []string
	for _, f := range found {
		line := fmt.Sprintf("%-24s %s, for %s", f.Name, f.Answer, f.Use)
		if f.Reason != "" {
			line += "\n    " + f.Reason
		}
		if f.Remedy != "" {
			line += "\n    what would change that: " + f.Remedy
		}
		lines = append(lines, line)
	}
	return lines, errors.Join(err, l.Close())
}
