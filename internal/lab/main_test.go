//go:build linux

package lab_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/bpf"
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
	"github.com/knotmeter/knotmeter/internal/lab/labtest"
	"github.com/knotmeter/knotmeter/internal/lab/nft"
	"github.com/knotmeter/knotmeter/internal/lab/probe"
	userspace "github.com/knotmeter/knotmeter/internal/lab/wireguard"
)

// What the test binary is instead of a test, by its first argument.
const (
	holdArg = "lab-holder"
	lieArg  = "lab-holder-of-liars"
	loopArg = "loop" // opens sites for ever, as a program does that is about to be killed
)

func kit() lab.Kit {
	return lab.Kit{
		Datapaths: []lab.Datapath{host.New(), native.New(), vxlan.New(), bridge.New(), macvlan.New(), ipvlan.New(), hostdevice.New(),
			ipip.New(), wireguard.Native(), wireguard.VXLAN(), ipsec.Native(), ipsec.VXLAN()},
		Services: []lab.Services{nft.Services{}, bpf.Connect{}},
		Features: probe.Features(),
	}
}

func config() lab.Config { return lab.Config{Kit: kit(), Argv: []string{"/proc/self/exe", holdArg}} }

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == holdArg {
		if err := lab.Hold(kit()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == userspace.Command {
		if userspace.Serve(os.Args[2:], os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == lieArg {
		if err := lab.Hold(lyingKit()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == bulkArg {
		if err := bulk(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == loopArg {
		fmt.Fprintln(os.Stderr, loop())
		os.Exit(1)
	}
	interfaces, err := labtest.Interfaces()
	status := m.Run()
	after, err2 := labtest.Interfaces()
	if err := errors.Join(err, err2, leaked()); err != nil || !slices.Equal(after, interfaces) {
		fmt.Fprintln(os.Stderr, "left after all tests:", err, "interfaces before:", interfaces, "after:", after)
		status = 1
	}
	os.Exit(status)
}
