package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestTargetsAreNamedOneWay checks that targets are arguments or the flag, in their order; both together are refused,
// since the first is the baseline.
func TestTargetsAreNamedOneWay(t *testing.T) {
	for line, want := range map[string]string{
		"lab:native lab:vxlan":                   "lab:native lab:vxlan",
		"--target lab:native --target lab:vxlan": "lab:native lab:vxlan",
		"lab:native --blocks 3 lab:vxlan?mtu=1":  "lab:native lab:vxlan?mtu=1",
		"lab:native --target lab:vxlan":          "",
	} {
		var o options
		c := &cobra.Command{Use: "run"}
		o.register(c)
		if err := c.ParseFlags(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
		err := o.read(t.Context(), c.Flags().Args())
		if refused := want == ""; refused != (err != nil) || !refused && !slices.Equal(o.targets, strings.Fields(want)) {
			t.Errorf("%s: %q, %v", line, o.targets, err)
		}
	}
}

func TestFractionIsShownInPercent(t *testing.T) {
	for text, want := range map[string]string{"0.02": "2%", "2%": "2%", "0.005": "0.5%", "0.07": "7%", "0": "0%"} {
		var f fraction
		if err := f.Set(text); err != nil || f.String() != want {
			t.Errorf("%s: %s, %v", text, &f, err)
		}
	}
}
