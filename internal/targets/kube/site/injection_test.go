package site

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// fakeAgent is a shell script that prints its own digest, as the agent does.
const fakeAgent = "#!/bin/sh\n[ \"$1\" = digest ] && sha256sum \"$0\" | cut -d ' ' -f 1\n"

// localShell runs scripts on this machine, with the agent's path in dir and only the named programs, or all if none is
// named.
func localShell(t *testing.T, dir string, only ...string) shell {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("this machine has no shell")
	}
	search := os.Getenv("PATH")
	if len(only) > 0 {
		search = filepath.Join(t.TempDir(), "bin")
		if err := os.Mkdir(search, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range only {
		at, err := exec.LookPath(name)
		if err != nil {
			t.Skip("this machine has no " + name)
		}
		if err := os.Symlink(at, filepath.Join(search, name)); err != nil {
			t.Fatal(err)
		}
	}
	return func(ctx context.Context, stdin io.Reader, script string, args ...string) (string, string, error) {
		var out, errs bytes.Buffer
		// Only in containers may the first process be signalled.
		script = strings.Replace(script, "; kill -USR1 1", "", 1)
		c := exec.CommandContext(ctx, sh, append([]string{"-c", script, filepath.Join(dir,
			filepath.Base(manifest.InjectPath))}, args...)...)
		c.Env = []string{"PATH=" + search}
		c.Stdin, c.Stdout, c.Stderr = stdin, &out, &errs
		err := c.Run()
		return out.String(), errs.String(), err
	}
}

// TestCopy checks that the copy is complete and executable, whichever programs an image has.
func TestCopy(t *testing.T) {
	agents := func(string) ([]byte, error) { return []byte(fakeAgent), nil }
	// The fake agent itself needs these programs.
	fake := []string{"sha256sum", "cut", "sh"}
	for want, has := range map[string][]string{
		"gzip": {"cat", "chmod", "gzip"}, "cat": {"cat", "chmod"}, "tar": {"tar"},
	} {
		t.Run(want, func(t *testing.T) {
			dir := t.TempDir()
			run := localShell(t, dir, append(has, fake...)...)
			i := &Injector{Agents: agents, Image: "own:1"}
			p, err := i.payloadFor(t.Context(), "amd64", run)
			if err != nil || p.method.name != want || p.digest != fmt.Sprintf("%x", sha256.Sum256([]byte(fakeAgent))) {
				t.Fatalf("%+v, %v", p.method.name, err)
			}
			if err := p.copyInto(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			copied, err := os.ReadFile(filepath.Join(dir, "knotmeter-agent"))
			if err != nil || string(copied) != fakeAgent {
				t.Errorf("%q, %v", copied, err)
			}
			asked := false
			again, err := i.payloadFor(t.Context(), "amd64", func(context.Context, io.Reader, string, ...string) (string, string,
				error) {
				asked = true
				return "", "", nil
			})
			if err != nil || asked || again.digest != p.digest {
				t.Errorf("the second pod: asked %v, %v", asked, err)
			}
		})
	}
}

// TestCutCopy checks that a copy that is cut short is detected and retried once, and that the second failure is an
// error.
func TestCutCopy(t *testing.T) {
	agents := func(string) ([]byte, error) { return []byte(fakeAgent + strings.Repeat("# more\n", 1000)), nil }
	for _, has := range [][]string{{"cat", "chmod"}, {"cat", "chmod", "gzip"}, {"tar"}} {
		run := localShell(t, t.TempDir(), append(has, "sha256sum", "cut", "sh")...)
		p, err := (&Injector{Agents: agents}).payloadFor(t.Context(), "amd64", run)
		if err != nil {
			t.Fatal(err)
		}
		for cut := 1; cut <= 2; cut++ {
			tries := 0
			err := p.copyInto(t.Context(), func(ctx context.Context, in io.Reader, script string, args ...string) (string,
				string, error) {
				if tries++; tries <= cut {
					in = io.LimitReader(in, int64(len(p.content)/2))
				}
				return run(ctx, in, script, args...)
			})
			if (err == nil) != (cut == 1) || tries != 2 {
				t.Errorf("%s, cut %d times: %v after %d tries", p.method.name, cut, err, tries)
			}
			if err != nil && !strings.Contains(err.Error(), "not copied in 2 tries") {
				t.Error(err)
			}
		}
	}
}

func TestInjectErrors(t *testing.T) {
	agents := func(arch string) ([]byte, error) { return nil, errors.New("there is no agent for linux/" + arch) }
	says := func(out string) shell {
		return func(context.Context, io.Reader, string, ...string) (string, string, error) { return out, "words", nil }
	}
	for _, test := range []struct{ name, arch, out, want string }{
		{"nothing", "amd64", "machine x86_64\nend\n", "cannot be put into the image own:1: it has neither cat and chmod " +
			"nor tar; inject=yes needs a shell (sh), and cat and chmod, or tar"},
		{"no chmod", "amd64", "has cat\nmachine x86_64\nend\n", "neither chmod nor tar"},
		{"no agent", "arm64", "has tar\nmachine \nend\n", "there is no agent for linux/arm64"},
		{"no architecture", "", "has tar\nmachine \nend\n", "nodes may not be listed, and the image own:1 has no uname"},
		{"by uname", "", "has tar\nmachine aarch64\nend\n", "no agent for linux/arm64"},
		{"no shell", "amd64", "hello", `its shell answers "hello"`},
		{"cut", "amd64", "has cat\nhas chmod\n", "its shell answers"},
	} {
		i := &Injector{Agents: agents, Image: "own:1"}
		if _, err := i.payloadFor(t.Context(), test.arch, says(test.out)); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	broken := func(context.Context, io.Reader, string, ...string) (string, string, error) {
		return "", "sh: /knotmeter/knotmeter-agent: Permission denied", errors.New("status 126")
	}
	p := payload{content: []byte("x"), digest: "y"}
	if err := p.copyInto(t.Context(), broken); err == nil || !strings.Contains(err.Error(), "does not let programs run") {
		t.Error(err)
	}
}

// TestSilentShell checks that a pod whose shell never answers is given up after probeTime, and meanwhile delays no
// other pod.
func TestSilentShell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &Injector{Agents: func(string) ([]byte, error) { return []byte(fakeAgent), nil }, Image: "own:1"}
		began := time.Now()
		silent := make(chan error)
		go func() {
			_, err := i.payloadFor(t.Context(), "amd64", func(ctx context.Context, _ io.Reader, _ string, _ ...string) (string,
				string, error) {
				<-ctx.Done()
				return "", "", ctx.Err()
			})
			silent <- err
		}()
		synctest.Wait()
		_, err := i.payloadFor(t.Context(), "amd64", func(context.Context, io.Reader, string, ...string) (string, string,
			error) {
			return "has tar\nend\n", "", nil
		})
		if err != nil || time.Since(began) != 0 {
			t.Errorf("the other pod: %v after %v", err, time.Since(began))
		}
		if err := <-silent; err == nil || !strings.Contains(err.Error(), "did not answer within 30s") {
			t.Errorf("error %v", err)
		}
	})
}

// TestEndlessSpeech checks that only the beginning of endless output is kept.
func TestEndlessSpeech(t *testing.T) {
	var s limitedOutput
	for range 100 {
		if n, err := s.Write([]byte(strings.Repeat("yes\n", 1000))); n != 4000 || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := s.String(); len(got) != outputLimit || !strings.HasPrefix(got, "yes\nyes\n") {
		t.Errorf("%d bytes are kept", len(got))
	}
}

func FuzzMeans(f *testing.F) {
	f.Add("has cat\nhas chmod\nmachine x86_64\nend\n")
	f.Add("\r\n end")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseTools(text)
		if err == nil {
			_, _ = m.copyMethod()
		}
	})
}
