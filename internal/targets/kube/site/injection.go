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

// The agent's program is put into pods of images that do not have it, with what their shells have.

// Agents finds the agent's program for an architecture of nodes, such as amd64.
type Agents func(arch string) ([]byte, error)

// A means is what an image has of what a copy takes.
type means struct {
	has  []string
	arch string // of the machine; empty if there is no uname
}

// probeScript prints the programs of copying that there are, and the machine.
const probeScript = `for p in cat chmod gzip gunzip tar; do ` +
	`if command -v "$p" >/dev/null 2>&1; then echo "has $p"; fi; done; echo "machine $(uname -m 2>/dev/null)"; echo end`

// parseMeans reads what the probe prints.
func parseMeans(text string) (means, error) {
	var m means
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if lines[len(lines)-1] != "end" {
		return m, fmt.Errorf("its shell answers %q", diagnosis.Shorten(text))
	}
	for _, line := range lines {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch key {
		case "has":
			m.has = append(m.has, value)
		case "machine":
			m.arch = map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[value]
		}
	}
	return m, nil
}

// A copying is how the program is copied into an image.
type copying struct {
	unpack string // reads standard input, and makes the file $0, which can be executed
	packed func([]byte) ([]byte, error)
	name   string
}

// copying chooses how to copy: compressed if the image can unpack that.
func (m means) copying() (copying, error) {
	has := func(name string) bool { return slices.Contains(m.has, name) }
	switch files := has("cat") && has("chmod"); {
	case files && has("gzip"):
		return copying{`gzip -dc >"$0"; chmod 0755 "$0"`, compress, "gzip"}, nil
	case files && has("gunzip"):
		return copying{`gunzip -c >"$0"; chmod 0755 "$0"`, compress, "gunzip"}, nil
	case files:
		return copying{`cat >"$0"; chmod 0755 "$0"`, func(b []byte) ([]byte, error) { return b, nil }, "cat"}, nil
	case has("tar"):
		return copying{`tar xf - -C "${0%/*}"`, archive, "tar"}, nil
	}
	var missing []string
	for _, name := range []string{"cat", "chmod"} {
		if !has(name) {
			missing = append(missing, name)
		}
	}
	return copying{}, fmt.Errorf("it has neither %s nor tar; inject=yes needs %s", strings.Join(missing, " and "),
		manifest.ShellNeeds)
}

// script copies, has the copy say what it is, and only if that is $1 lets it take the place of the first process.
func (c copying) script() string {
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

// An Injector has what is copied into the pods of an experiment, all of which have the same image.
type Injector struct {
	Agents Agents
	Image  string

	mu    sync.Mutex
	ready map[string]parcel // by architecture of the node
}

// A parcel is the program as it is sent.
type parcel struct {
	content []byte
	digest  string // of the program, SHA-256 in hexadecimal
	by      copying
}

// String says what is sent, for the facts.
func (p parcel) String() string { return fmt.Sprintf("%d bytes by %s", len(p.content), p.by.name) }

// prepared returns the parcel for an architecture, if there is one.
func (i *Injector) prepared(arch string) (parcel, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	p, ok := i.ready[arch]
	return p, ok
}

// parcelFor prepares what is sent to a node, once for each architecture; without a known one the pod is asked. Pods
// that do not answer hold up no other.
func (i *Injector) parcelFor(ctx context.Context, arch string, run shell) (parcel, error) {
	if p, ok := i.prepared(arch); ok {
		return p, nil
	}
	m, err := i.probe(ctx, run)
	if err != nil {
		return parcel{}, err
	}
	if arch == "" {
		arch = m.arch
	}
	if arch == "" {
		return parcel{}, fmt.Errorf("the architecture of the node is unknown: nodes may not be listed, and the image %s "+
			"has no uname; allow the listing of nodes", i.Image)
	}
	by, err := m.copying()
	if err != nil {
		return parcel{}, fmt.Errorf("the agent cannot be put into the image %s: %w", i.Image, err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if p, ok := i.ready[arch]; ok {
		return p, nil
	}
	program, err := i.Agents(arch)
	if err != nil {
		return parcel{}, fmt.Errorf("inject=yes: %w", err)
	}
	p := parcel{digest: fmt.Sprintf("%x", sha256.Sum256(program)), by: by}
	if p.content, err = by.packed(program); err != nil {
		return parcel{}, err
	}
	if i.ready == nil {
		i.ready = map[string]parcel{}
	}
	i.ready[arch] = p
	return p, nil
}

// A shell runs a script in a container. Its error is the connection's, or that of a status other than 0.
type shell func(ctx context.Context, stdin io.Reader, script string, args ...string) (stdout, stderr string, err error)

// probeTime is how long a shell may take to print what its image has.
const probeTime = 30 * time.Second

// probe asks a pod what its image has.
func (i *Injector) probe(ctx context.Context, run shell) (means, error) {
	limited, cancel := context.WithTimeoutCause(ctx, probeTime,
		fmt.Errorf("it did not answer within %v", probeTime))
	defer cancel()
	out, errs, err := run(limited, strings.NewReader(""), probeScript)
	if limited.Err() != nil {
		err = context.Cause(limited)
	}
	if err != nil {
		return means{}, fmt.Errorf("the image %s: its shell cannot be used: %w: %s", i.Image, err, diagnosis.Shorten(errs))
	}
	m, err := parseMeans(out)
	if err != nil {
		return means{}, fmt.Errorf("the image %s: %w", i.Image, err)
	}
	return m, nil
}

// How long one copy may take, and how often it is tried.
const (
	copyTime  = 30 * time.Second
	copyTries = 2
)

// copyInto copies the program and checks the copy; what failed once is tried again.
func (p parcel) copyInto(ctx context.Context, run shell) error {
	var err error
	for range copyTries {
		if err = p.copyOnce(ctx, run); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("the agent was not copied in %d tries: %w", copyTries, err)
}

// copyOnce copies and checks. What the far end complains of ends it: nobody may be left there who reads the rest.
func (p parcel) copyOnce(ctx context.Context, run shell) error {
	limited, cancel := context.WithTimeout(ctx, copyTime)
	defer cancel()
	out, errs, err := run(limited, bytes.NewReader(p.content), p.by.script(), p.digest)
	got := strings.TrimSpace(out)
	switch {
	case got == p.digest:
		// What is said of the connection afterwards does not matter: the copy is whole.
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
