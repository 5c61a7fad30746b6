package site

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// With inject=yes the agent is copied into pods whose image lacks it, using only programs that the image has.

// Agents returns the agent's program for an architecture of nodes, such as amd64.
type Agents func(arch string) ([]byte, error)

// imageTools holds the programs for copying that an image has.
type imageTools struct {
	programs []string
	arch     string // of the machine; "" if uname is missing or unknown
}

// probeScript prints which programs for copying exist, and the machine's architecture.
const probeScript = `for p in cat chmod gzip gunzip tar; do ` +
	`if command -v "$p" >/dev/null 2>&1; then echo "has $p"; fi; done; echo "machine $(uname -m 2>/dev/null)"; echo end`

// parseTools parses the output of probeScript.
func parseTools(text string) (imageTools, error) {
	var m imageTools
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if lines[len(lines)-1] != "end" {
		return m, fmt.Errorf("its shell answers %q", diagnosis.Shorten(text))
	}
	for _, line := range lines {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch key {
		case "has":
			m.programs = append(m.programs, value)
		case "machine":
			m.arch = map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[value]
		}
	}
	return m, nil
}

// A copyMethod is a way to copy the agent into an image.
type copyMethod struct {
	unpack string // shell commands that write standard input to the executable file $0
	pack   func([]byte) ([]byte, error)
	name   string
}

// copyMethod chooses how to copy the agent: compressed if the image can decompress.
func (m imageTools) copyMethod() (copyMethod, error) {
	has := func(name string) bool { return slices.Contains(m.programs, name) }
	switch files := has("cat") && has("chmod"); {
	case files && has("gzip"):
		return copyMethod{`gzip -dc >"$0"; chmod 0755 "$0"`, compress, "gzip"}, nil
	case files && has("gunzip"):
		return copyMethod{`gunzip -c >"$0"; chmod 0755 "$0"`, compress, "gunzip"}, nil
	case files:
		return copyMethod{`cat >"$0"; chmod 0755 "$0"`, func(b []byte) ([]byte, error) { return b, nil }, "cat"}, nil
	case has("tar"):
		return copyMethod{`tar xf - -C "${0%/*}"`, archive, "tar"}, nil
	}
	var missing []string
	for _, name := range []string{"cat", "chmod"} {
		if !has(name) {
			missing = append(missing, name)
		}
	}
	return copyMethod{}, fmt.Errorf("it has neither %s nor tar; inject=yes needs %s", strings.Join(missing, " and "),
		manifest.ShellNeeds)
}

// script returns a script that copies the agent to $0 and prints the digest of the copy. If the digest equals $1, the
// script signals the container's first process to replace itself with the agent.
func (c copyMethod) script() string {
	return `set -e; ` + c.unpack +
		`; d=$("$0" digest) || d="it ended with status $?"; echo "$d"; [ "$d" = "$1" ]; kill -USR1 1`
}

func compress(b []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(b)
		err = errors.Join(err, w.Close())
	}
	return out.Bytes(), err
}

func archive(b []byte) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path.Base(manifest.InjectPath), Size: int64(len(b)),
		Mode: 0o755, ModTime: time.Unix(0, 0)})
	if err == nil {
		_, err = w.Write(b)
	}
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// An Injector prepares the agents that are copied into the pods of an experiment, all of which have the same image.
type Injector struct {
	Agents Agents
	Image  string

	mu    sync.Mutex
	ready map[string]payload // by architecture
}

// A payload is the agent's program in the form in which it is sent.
type payload struct {
	content []byte
	digest  string // SHA-256 of the program, in hexadecimal
	method  copyMethod
}

// String returns the size and the method, for the facts.
func (p payload) String() string { return fmt.Sprintf("%d bytes by %s", len(p.content), p.method.name) }

// prepared returns the payload for an architecture, if it exists.
func (i *Injector) prepared(arch string) (payload, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	p, ok := i.ready[arch]
	return p, ok
}

// payloadFor returns the payload for a node's architecture, which it prepares once. If arch is "", it asks the pod. It
// does not hold the lock while it waits for a pod, so a silent pod delays no other.
func (i *Injector) payloadFor(ctx context.Context, arch string, run shell) (payload, error) {
	if p, ok := i.prepared(arch); ok {
		return p, nil
	}
	m, err := i.probe(ctx, run)
	if err != nil {
		return payload{}, err
	}
	if arch == "" {
		arch = m.arch
	}
	if arch == "" {
		return payload{}, fmt.Errorf("the architecture of the node is unknown: nodes may not be listed, and the image %s "+
			"has no uname; allow the listing of nodes", i.Image)
	}
	by, err := m.copyMethod()
	if err != nil {
		return payload{}, fmt.Errorf("the agent cannot be put into the image %s: %w", i.Image, err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if p, ok := i.ready[arch]; ok {
		return p, nil
	}
	program, err := i.Agents(arch)
	if err != nil {
		return payload{}, fmt.Errorf("inject=yes: %w", err)
	}
	p := payload{digest: fmt.Sprintf("%x", sha256.Sum256(program)), method: by}
	if p.content, err = by.pack(program); err != nil {
		return payload{}, err
	}
	if i.ready == nil {
		i.ready = map[string]payload{}
	}
	i.ready[arch] = p
	return p, nil
}

// A shell runs a script in a container. Its error is that of the connection, or a status of the script other than 0.
type shell func(ctx context.Context, stdin io.Reader, script string, args ...string) (stdout, stderr string, err error)

// probeTime limits the run of probeScript.
const probeTime = 30 * time.Second

// probe returns the programs that a pod's image has.
func (i *Injector) probe(ctx context.Context, run shell) (imageTools, error) {
	limited, cancel := context.WithTimeoutCause(ctx, probeTime,
		fmt.Errorf("it did not answer within %v", probeTime))
	defer cancel()
	out, errs, err := run(limited, strings.NewReader(""), probeScript)
	if limited.Err() != nil {
		err = context.Cause(limited)
	}
	if err != nil {
		return imageTools{}, fmt.Errorf("the image %s: its shell cannot be used: %w: %s", i.Image, err,
			diagnosis.Shorten(errs))
	}
	m, err := parseTools(out)
	if err != nil {
		return imageTools{}, fmt.Errorf("the image %s: %w", i.Image, err)
	}
	return m, nil
}

// Limits of copying: the time of one attempt, and the number of attempts.
const (
	copyTime  = 30 * time.Second
	copyTries = 2
)

// copyInto copies the program into a container and checks the copy, with one retry.
func (p payload) copyInto(ctx context.Context, run shell) error {
	var err error
	for range copyTries {
		if err = p.copyOnce(ctx, run); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("the agent was not copied in %d tries: %w", copyTries, err)
}

// copyOnce copies the program and checks the copy once. Output on standard error soon ends the attempt, because the
// script may no longer read its input.
func (p payload) copyOnce(ctx context.Context, run shell) error {
	limited, cancel := context.WithTimeout(ctx, copyTime)
	defer cancel()
	out, errs, err := run(limited, bytes.NewReader(p.content), p.method.script(), p.digest)
	got := strings.TrimSpace(out)
	switch {
	case got == p.digest:
		// The copy is complete, so a later error of the connection does not matter.
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case strings.Contains(errs, "Permission denied"):
		return fmt.Errorf("the node does not let programs run from a volume in memory (%s); use an image that has the "+
			"agent instead of inject=yes", diagnosis.Shorten(errs))
	case got != "" || err == nil:
		return fmt.Errorf("the copy is not whole: its SHA-256 should be %s, and the copy says %q %s", p.digest,
			diagnosis.Shorten(got), diagnosis.Shorten(errs))
	}
	return fmt.Errorf("the copy ended early: %w: %s", err, diagnosis.Shorten(errs))
}
