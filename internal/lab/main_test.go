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
	"github.com/knotmeter/knotmeter/internal/lab/wireguard"
)

// What the test binary is instead of a test, by its first argument.
const (
	holdArg = "lab-holder"
	lieArg  = "lab-holder-of-liars"
	loopArg = "loop" // opens sites for ever, as a program does that is about to be killed
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
