package cli

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/plan"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/store"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// trust asks for consent to what a results directory names, unless its experiment was made here and is unchanged:
// files, programs, addresses and secrets of this user are nothing that others may choose. Nothing that it names is used
// before.
func (o *options) trust(ctx context.Context, s Streams, r *store.Results, specs []targets.Spec) error {
	key, err := originKey(r.Experiment)
	if err == nil && r.SealedBy(key) {
		return nil
	}
	why := "it was not made here, or was changed; resuming it uses what follows"
	if err != nil {
		why = fmt.Sprintf("whether it was made here is not known (%v); resuming it uses what follows", err)
	}
	list := slices.Concat([]plan.Concern{concern(r.Path, why)}, named(r.Experiment, specs), concerns(r.Experiment, nil))
	for i, c := range list {
		list[i] = concern(prose.Plain(c.What), prose.Plain(c.Why))
	}
	yes := o.yes // an answer is to this question alone
	if err := consent(ctx, s, list, &yes); err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	if !o.yes {
		return nil
	}
	for _, c := range list {
		fmt.Fprintf(s.Err, "--yes consents to %s\n", c)
	}
	return nil
}

// seal vouches for the experiment that is written, where there is a key to do so.
func (x *experiment) seal() error {
	key, err := originKey(x.config.Experiment)
	if err != nil {
		return nil // whoever resumes it will be asked
	}
	return x.writer.Seal(key)
}

// named lists what an experiment names of this machine and of the network.
func named(e result.Experiment, specs []targets.Spec) []plan.Concern {
	var list []plan.Concern
	for _, spec := range specs {
		list = append(list, concern("target "+targetWords(spec), "it is measured"))
		if k, err := registry.FindKind(spec.Kind); err == nil && k.Uses != nil {
			for _, use := range k.Uses(spec) {
				list = append(list, concern(use, "it is used to reach "+spec.Label()))
			}
		}
	}
	for _, sent := range sends(e) {
		list = append(list, concern(destinationWords(sent.To), "requests go there"))
		for _, name := range sent.Variables {
			list = append(list, concern("environment variable "+name, "it is sent there"))
		}
	}
	list = append(list, commandsOf(e)...)
	for _, name := range files(e, specs) {
		list = append(list, concern("file "+name, "it is read"))
	}
	return unique(list)
}

// targetWords are a target with its options as they are understood.
func targetWords(spec targets.Spec) string {
	words := spec.Kind + ":" + spec.Name
	for _, name := range slices.Sorted(maps.Keys(spec.Options)) {
		words += fmt.Sprintf(" %s=%s", name, spec.Options[name])
	}
	return words
}

// sends are what cases name themselves of where requests go.
func sends(e result.Experiment) []family.Sent {
	var list []family.Sent
	for _, w := range workloads(e) {
		if r, is := w.(family.Request); is && r.Sends().To.URL != "" {
			list = append(list, r.Sends())
		}
	}
	return list
}

// files are those that an experiment names by the options of its targets and the descriptions of requests.
func files(e result.Experiment, specs []targets.Spec) []string {
	var list []string
	for _, spec := range specs {
		k, err := registry.FindKind(spec.Kind)
		if err != nil {
			continue
		}
		for _, o := range k.Options {
			if name := o.File(spec.Options[o.Name]); name != "" {
				list = append(list, name)
			}
		}
	}
	for _, sent := range sends(e) {
		list = append(list, sent.Files...)
	}
	return list
}

// originKey is the key that vouches for the experiments that this user makes. Those that name files by relative paths
// have one for each working directory: elsewhere, the names are of other files.
func originKey(e result.Experiment) ([]byte, error) {
	key, err := userKey()
	if err != nil {
		return nil, err
	}
	var specs []targets.Spec
	for _, t := range e.Targets {
		if spec, err := targets.ParseSpec(t.Spec); err == nil {
			specs = append(specs, spec)
		}
	}
	relative := func(name string) bool { return !filepath.IsAbs(name) }
	if !slices.ContainsFunc(files(e, specs), relative) {
		return key, nil
	}
	in, err := os.Getwd()
	if err == nil {
		in, err = filepath.EvalSymlinks(in)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("working directory\x00" + in)) // never fails
	return mac.Sum(nil), err
}

// keySize is the length of a user's key in bytes.
const keySize = 32

// userKey reads the key that this user vouches with, and makes it first if there is none. It is nowhere but in the
// user's directory for state.
func userKey() ([]byte, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		state = filepath.Join(home, ".local", "state")
	}
	name := filepath.Join(state, "knotmeter", "key")
	key, err := readKey(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	if err := makeKey(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return readKey(name)
}

// makeKey makes a key that is not there yet. It gets its name when it is whole: neither a crash nor a full disk leaves
// half of one, and of two programs that make it at once both use the same.
func makeKey(name string) error {
	file, err := os.CreateTemp(filepath.Dir(name), "key-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	key := make([]byte, keySize)
	rand.Read(key) // never fails
	_, err = file.Write(key)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Link(file.Name(), name)
}

// readKey refuses a key that others may know.
func readKey(name string) ([]byte, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 || info.Size() != keySize {
		return nil, fmt.Errorf("%s is not a file of %d bytes that only its owner may read; remove it to get a new one",
			name, keySize)
	}
	return os.ReadFile(name)
}
