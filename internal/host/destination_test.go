package host

import "testing"

func TestExposed(t *testing.T) {
	for _, test := range []struct {
		url       string
		addresses []string
		want      bool
	}{
		{"https://vault.example:8200", nil, false},
		{"http://vault.example:8200", nil, true},
		{"http://10.0.0.1:8200", nil, true},
		{"http://vault.apps.svc:8200", nil, true},
		{"http://127.0.0.1:8200", nil, false},
		{"http://127.8.0.1", nil, false},
		{"http://[::1]:8200", nil, false},
		{"http://[::ffff:127.0.0.1]:8200", nil, false},
		{"http://localhost:8200", nil, false},
		{"http://localhost.example:8200", nil, true},
		{"http://127.0.0.1:8200", []string{"10.0.0.1:8200"}, true},
		{"http://vault.example:8200", []string{"127.0.0.1:8200", "[::1]:8200"}, false},
		{"http://127.0.0.1:8200", []string{"127.0.0.1:8200", "nothing"}, true},
		{"", nil, false},
	} {
		if got := (Destination{URL: test.url, Addresses: test.addresses, Secret: true}).Exposed(); got != test.want {
			t.Errorf("%s, %v: %t", test.url, test.addresses, got)
		}
		if (Destination{URL: test.url, Addresses: test.addresses}).Exposed() {
			t.Errorf("%s: nothing is secret", test.url)
		}
	}
}
