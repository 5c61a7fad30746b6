package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A recorder is a testing.TB that records the message of a failure.
type recorder struct {
	testing.TB
	said string
}

type stopped struct{}

func (r *recorder) Helper()                   {}
func (r *recorder) Errorf(f string, a ...any) { r.said = fmt.Sprintf(f, a...) }
func (r *recorder) Fatalf(f string, a ...any) { r.said = fmt.Sprintf(f, a...); panic(stopped{}) }
func (r *recorder) Fatal(a ...any)            { r.said = fmt.Sprint(a...); panic(stopped{}) }

func check(path, got string) (said string) {
	r := &recorder{}
	defer func() {
		said = r.said
		if p := recover(); p != nil && p != (stopped{}) {
			panic(p)
		}
	}()
	Check(r, path, got)
	return r.said
}

// setUpdate sets the -update flag until the test ends.
func setUpdate(t *testing.T, on bool) {
	t.Helper()
	before := *update
	*update = on
	t.Cleanup(func() { *update = before })
}

func TestCheck(t *testing.T) {
	setUpdate(t, false)
	path := filepath.Join(t.TempDir(), "below", "file")
	if said := check(path, "one\n"); !strings.Contains(said, path) || !strings.Contains(said, "-update") {
		t.Errorf("without a file: %q", said)
	}
	setUpdate(t, true)
	if said := check(path, "one\ntwo\n"); said != "" {
		t.Errorf("-update: %q", said)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("written: %q, %v", text, err)
	}
	setUpdate(t, false)
	if said := check(path, "one\ntwo\n"); said != "" {
		t.Errorf("equal: %q", said)
	}
	for _, got := range []string{"one\ntwo", "one\n2\n", "one\r\ntwo\n", ""} {
		if said := check(path, got); !strings.Contains(said, path) || !strings.Contains(said, "two") {
			t.Errorf("%q: %q", got, said)
		}
	}
}
