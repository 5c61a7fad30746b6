package report

import (
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/prose"
)

// TestCSVCells checks that no cell is a formula or contains control characters, and that numbers are unchanged.
func TestCSVCells(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "pod-pod/other": "pod-pod/other", "lab:vxlan?mtu=9000": "lab:vxlan?mtu=9000",
		"=1+1": "'=1+1", "@SUM(A1)": "'@SUM(A1)", "+cmd|' /C calc'!A0": "'+cmd|' /C calc'!A0",
		"-2+3": "'-2+3", "-": "'-", " =1": "' =1", "\n=1": "'\n=1",
		"\t=1": `'\t=1`, "\rx": `'\rx`,
		"-3.5": "-3.5", "+12 %": "+12 %", "-1e-9": "-1e-9", "+.5%": "+.5%", "5": "5", "-5.1.2": "'-5.1.2",
		"a\x1b[2Jb\u202ec": `a\x1b[2Jb\u202ec`, "a\nb": "a\nb",
	} {
		if got := csvCells([]string{text}); !slices.Equal(got, []string{want}) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := labels("target", "a\x1b]0;t\a\n\u202e"); prose.Plain(got) != got {
		t.Errorf("%q", got)
	}
}
