// Command multus runs Multus as a CNI plugin, by its own packages.
package main

import (
	"github.com/containernetworking/cni/pkg/skel"
	cni "github.com/containernetworking/cni/pkg/version"
	"gopkg.in/k8snetworkplumbingwg/multus-cni.v4/pkg/multus"
)

func main() {
	skel.PluginMainFuncs(skel.CNIFuncs{
		Add: func(args *skel.CmdArgs) error {
			result, err := multus.CmdAdd(args, nil, nil)
			if err != nil {
				return err
			}
			return result.Print()
		},
		Del:    func(args *skel.CmdArgs) error { return multus.CmdDel(args, nil, nil) },
		Check:  func(args *skel.CmdArgs) error { return multus.CmdCheck(args, nil, nil) },
		Status: func(args *skel.CmdArgs) error { return multus.CmdStatus(args, nil, nil) },
		GC:     func(args *skel.CmdArgs) error { return multus.CmdGC(args, nil, nil) },
	}, cni.All, "meta-plugin that attaches pods to several networks")
}
