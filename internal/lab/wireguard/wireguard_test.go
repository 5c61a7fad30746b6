package wireguard

import (
	"crypto/ecdh"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/lab"
)

func fixedKey(t *testing.T, b byte) Key {
	t.Helper()
	secret := make([]byte, 32)
	secret[1] = b
	k, err := ecdh.X25519().NewPrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return Key{k}
}

func TestConfiguration(t *testing.T) {
	c := Config{
		Private: fixedKey(t, 1), Port: lab.WireGuardPort,
		Peers: []Peer{
			{fixedKey(t, 2).Public(), netip.MustParseAddrPort("10.0.0.2:51820"),
				[]netip.Prefix{netip.MustParsePrefix("10.244.2.0/24"), netip.MustParsePrefix("fd00:244:2::/64")}},
			{fixedKey(t, 3).Public(), netip.MustParseAddrPort("[fd00::3]:51820"), nil},
		},
	}
	golden.Check(t, "testdata/config.txt", c.uapi())
}

func TestKeysAreHidden(t *testing.T) {
	k, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	secret := hex.EncodeToString(k.secret.Bytes())
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q", "%d"} {
		for _, v := range []any{k, &k, Config{Private: k}, []Key{k}} {
			got := strings.ToLower(fmt.Sprintf(verb, v))
			if strings.Contains(got, secret) || !strings.Contains(got, "(hidden)") {
				t.Errorf("%s of %T shows %s", verb, v, got)
			}
		}
	}
	if text, err := json.Marshal(Config{Private: k}); err == nil {
		t.Errorf("as JSON: %s", text)
	}
}

func TestKeysAreFresh(t *testing.T) {
	a, errA := NewKey()
	b, errB := NewKey()
	if errA != nil || errB != nil || a.Public() == b.Public() {
		t.Errorf("two keys are the same: %v, %v", errA, errB)
	}
}
