//go:build linux

package lab_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
	"github.com/knotmeter/knotmeter/internal/lab/labtest"
	"github.com/knotmeter/knotmeter/internal/lab/mesh"
	"github.com/knotmeter/knotmeter/internal/lab/wireguard"
)

// First arguments that make the test binary another program.
const (
	holdArg        = "lab-holder"
	mislabelledArg = "lab-holder-mislabelled"
	loopArg        = "loop" // opens sites until it is killed
)

func config() lab.Config {
	return lab.Config{Kit: datapath.Kit, Argv: []string{"/proc/self/exe", holdArg}}
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == holdArg {
		if err := lab.Hold(datapath.Kit); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == wireguard.Command {
		if wireguard.Serve(os.Args[2:], os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == mesh.Command {
		if mesh.Serve(os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == mislabelledArg {
		if err := lab.Hold(mislabelledKit()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == bulkArg {
		if err := runBulk(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == loopArg {
		fmt.Fprintln(os.Stderr, openSites())
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
