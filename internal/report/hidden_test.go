package report

import (
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

// TestHideNodes checks that names of nodes are replaced as whole words only, and addresses unless they are loopback's.
func TestHideNodes(t *testing.T) {
	run := func(client, server string) result.Run {
		return result.Run{Facts: []result.Fact{{Name: "client", Value: client}, {Name: "server", Value: server}}}
	}
	in := Input{Runs: []result.Run{run("ip-10-0-3-7.internal/client", "gke-b"), run("this machine", result.Unknown)}}
	for text, want := range map[string]string{
		"on ip-10-0-3-7.internal: throttled": "on node-2: throttled",
		"(gke-b), gke-b/pod, gke-bee":        "(node-1), node-1/pod, gke-bee",
		`"client":"gke-b"`:                   `"client":"node-1"`,
		"10.0.3.7:80 and 10.0.3.8":           "address-1:80 and address-2",
		"[fd00::1]:80 at 127.0.0.1":          "[address-1]:80 at 127.0.0.1",
		"6.12.0 at 08:15:30, unknown":        "6.12.0 at 08:15:30, unknown",
		"this machine, v1.2.3":               "this machine, v1.2.3",
	} {
		if got := HideNodes(in, text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
