package program

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/load/computeload"
	"github.com/knotmeter/knotmeter/internal/load/netload"
)

// ownDigest returns the SHA-256 of this test's program, as a line of text.
func ownDigest(t *testing.T) string {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x\n", sha256.Sum256(text))
}

func TestRun(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		name, stdin, out, errs, says string
		ctx                          context.Context
		args                         []string
		failed                       bool
	}{
		{name: "an agent", ctx: t.Context(), out: `"event":"hello"`},
		{
			name: "by its name", ctx: t.Context(), args: []string{"agent"}, stdin: "{}\n",
			out: `"event":"error"`, says: "a request failed", failed: true,
		},
		{
			name: "a command", ctx: t.Context(), args: []string{"exec", "echo", "here"}, stdin: "\x00\x00\x00\x00",
			errs: `{"status"`,
		},
		{name: "waiting", ctx: ended, args: []string{"wait"}},
		{name: "its digest", ctx: t.Context(), args: []string{"digest"}, out: ownDigest(t)},
		{name: "nonsense", ctx: t.Context(), args: []string{"dance"}, says: `unknown agent command "dance"`},
	} {
		var out, errs bytes.Buffer
		err := Run(test.ctx, test.args, strings.NewReader(test.stdin), &out, &errs)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.name, err)
		}
		if errors.Is(err, agent.ErrFailed) != test.failed {
			t.Errorf("%s: %v", test.name, err)
		}
		if !strings.Contains(out.String(), test.out) || !strings.Contains(errs.String(), test.errs) {
			t.Errorf("%s: it wrote %q and %q", test.name, out.String(), errs.String())
		}
	}
}

// TestBodies checks that each verb rejects an invalid body, with an error that does not contain the token.
func TestBodies(t *testing.T) {
	const secret = "00112233445566778899aabbccddeeff"
	w, err := netload.Spec{Kind: netload.TCPRR, Duration: 200 * time.Millisecond}.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	c := netload.Config{Role: netload.Client, Addr: netip.MustParseAddrPort("127.0.0.1:1"), Workload: w}
	body, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	good := fmt.Sprintf(`{"id":1,"verb":"net","token":%q,"body":%s}`, secret, body)
	tests := map[string]string{
		"unknown field": strings.Replace(good, `"role"`, `"rule"`, 1),
		"wrong type":    strings.Replace(good, `"role":"client"`, `"role":1`, 1),
		"short token":   strings.Replace(good, secret, secret[2:], 1),
		"odd token":     strings.Replace(good, secret, "zz"+secret[2:], 1),
		"no token":      strings.Replace(good, secret, strings.Repeat("0", 32), 1),
		"odd address":   strings.Replace(good, "127.0.0.1:1", "somewhere", 1),
		"odd workload":  strings.Replace(good, "tcp-rr", "sctp-rr", 1),
		"no such role":  strings.Replace(good, `"client"`, `"guest"`, 1),
	}
	for verb := range Verbs() {
		if verb != computeload.ReadingVerb { // which needs nothing
			tests[verb+" without anything"] = fmt.Sprintf(`{"id":1,"verb":%q,"token":%q,"body":{}}`, verb, secret)
		}
		tests[verb+" with too much"] = fmt.Sprintf(`{"id":1,"verb":%q,"token":%q,"body":{%q:1}}`, verb, secret, secret)
	}
	for name, line := range tests {
		var out bytes.Buffer
		err := ServeAgent(t.Context(), strings.NewReader(line+"\n"), &out)
		said := out.String()
		if !errors.Is(err, agent.ErrFailed) || !strings.Contains(said, `{"id":1,"event":"error"`) {
			t.Errorf("%s: %v, %s", name, err, said)
		}
		if strings.Contains(said, secret[4:]) {
			t.Errorf("%s: it tells what it read: %s", name, said)
		}
	}
}
