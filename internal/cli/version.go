package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func newVersion(s Streams, version string) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, as --version does",
		Args:  operands(0, 0),
		RunE:  func(*cobra.Command, []string) error { return printVersion(s, version) },
	}
}

func printVersion(s Streams, version string) error {
	_, err := fmt.Fprintf(s.Out, "knotmeter %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
