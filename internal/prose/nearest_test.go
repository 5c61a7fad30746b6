package prose

import "testing"

func TestDidYouMean(t *testing.T) {
	known := []string{"network", "network:quick", "storage", "p50",
		"p99", "pod-pod/other/tcp-rr", "pod-pod/other/tcp-crr", "x"}
	for name, want := range map[string]string{
		"netwrok":              `; did you mean "network"?`,
		"Storage":              `; did you mean "storage"?`,
		"network:quik":         `; did you mean "network:quick"?`,
		"p5":                   `; did you mean "p50"?`,
		"p95":                  `; did you mean "p99"?`,
		"tcp-crr":              `; did you mean "pod-pod/other/tcp-crr"?`,
		"pod-pod/other/tcp_rr": `; did you mean "pod-pod/other/tcp-rr"?`,
		"disks":                "",
		"":                     "",
		"é":                    "",
	} {
		if got := DidYouMean(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	if got, want := Choices("jsn", []string{"table", "json"}), `table, json; did you mean "json"?`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"same", "same", 0},
		{"rnu", "run", 1}} {
		if got := distance([]rune(test.a), []rune(test.b)); got != test.want {
			t.Errorf("%q to %q: %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
