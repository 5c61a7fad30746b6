package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// ownDigest is the SHA-256 of this test's program.
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

func TestProgram(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		name, stdin, out, errs, says string
		ctx                          context.Context
		args                         []string
		reported                     bool
	}{
		{name: "one side of a run", ctx: t.Context(), stdin: "{}", out: `"event":"error"`, says: "invalid specification", reported: true},
		{name: "by its name", ctx: t.Context(), args: []string{"agent"}, stdin: "{}", out: `"event":"error"`, says: "invalid specification", reported: true},
		{name: "a command", ctx: t.Context(), args: []string{"exec", "echo", "here"}, stdin: "\x00\x00\x00\x00", errs: `{"status"`},
		{name: "waiting", ctx: ended, args: []string{"wait"}},
		{name: "a meeting", ctx: t.Context(), args: []string{"meet"}, stdin: "{}", says: "invalid specification of a meeting"},
		{name: "its digest", ctx: t.Context(), args: []string{"digest"}, out: ownDigest(t)},
		{name: "nonsense", ctx: t.Context(), args: []string{"dance"}, says: `no command "dance"`},
	} {
		var out, errs bytes.Buffer
		err := Program(test.ctx, test.args, strings.NewReader(test.stdin), &out, &errs)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) || errors.Is(err, ErrReported) != test.reported {
			t.Errorf("%s: %v", test.name, err)
		}
		if !strings.Contains(out.String(), test.out) || !strings.Contains(errs.String(), test.errs) {
			t.Errorf("%s: it wrote %q and %q", test.name, out.String(), errs.String())
		}
	}
}
