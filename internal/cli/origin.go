package cli

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/plan"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/result"
)

// trust asks for consent to everything that the experiment of a results directory names, unless this user made it or
// consented before: others must not choose which files, programs, addresses and secrets of this user are used. Every
// command that acts on what a directory names calls it first. The named flag makes a command act.
func trust(ctx context.Context, s Streams, flag, dir string, e result.Experiment, specs []result.Spec, yes bool) error {
	this, err := planDigest(e)
	why := "it was not made here, or was changed; " + flag + " uses what follows"
	if err == nil {
		var digests []string
		if _, digests, err = ownExperiments(); slices.Contains(digests, this) {
			return nil
		}
	}
	if err != nil {
		why = fmt.Sprintf("whether it was made here is not known (%v); %s uses what follows", err, flag)
	}
	list := append([]plan.Concern{concern(dir, why)}, reachedResources(e, specs)...)
	for i, c := range list {
		list[i] = concern(prose.Plain(c.What), prose.Plain(c.Why))
	}
	agreed := yes // an answer holds for this question alone
	if err := consent(ctx, s, list, &agreed); err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	if yes {
		for _, c := range list {
			fmt.Fprintf(s.Err, "--yes consents to %s\n", c)
		}
	}
	return rememberExperiment(e)
}

// reachedResources lists what an experiment uses of this user, this machine and the network, and its other concerns.
func reachedResources(e result.Experiment, specs []result.Spec) []plan.Concern {
	return slices.Concat(namedResources(e, specs), concerns(e, nil))
}

// namedResources lists the targets, programs, destinations, variables, commands and files that an experiment names.
func namedResources(e result.Experiment, specs []result.Spec) []plan.Concern {
	var list []plan.Concern
	for _, spec := range specs {
		list = append(list, concern("target "+targetWords(spec), "it is measured"))
		if k, err := registry.FindKind(spec.Kind); err == nil && k.Uses != nil {
			for _, use := range k.Uses(spec) {
				list = append(list, concern(use, "it is used to reach "+spec.Label()))
			}
		}
	}
	for _, sent := range sentRequests(e) {
		for _, request := range sent.Requests {
			list = append(list, concern(destinationWords(sent.To), request+" is sent there"))
		}
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

// specsOf returns the specifications of an experiment's targets.
func specsOf(e result.Experiment) []result.Spec {
	var specs []result.Spec
	for _, t := range e.Targets {
		specs = append(specs, t.Spec)
	}
	return specs
}

// targetWords returns a target with its options as they were parsed.
func targetWords(spec result.Spec) string {
	words := spec.Kind + ":" + spec.Name
	for _, name := range slices.Sorted(maps.Keys(spec.Options)) {
		words += fmt.Sprintf(" %s=%s", name, spec.Options[name])
	}
	return words
}

// sentRequests returns the requests to servers that the cases themselves name, without those to applications of
// targets.
func sentRequests(e result.Experiment) []family.Sent {
	var list []family.Sent
	for _, w := range workloads(e) {
		if r, is := w.(family.Sender); is && r.Sends().To.URL != "" {
			list = append(list, r.Sends())
		}
	}
	return list
}

// files returns the files that an experiment names in options of its targets and in descriptions of requests.
func files(e result.Experiment, specs []result.Spec) []string {
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
	for _, sent := range sentRequests(e) {
		list = append(list, sent.Files...)
	}
	return list
}

// planDigest returns a hash of an experiment's plan, without the lists that grow while it runs, and of everything that
// a user would be asked about, such as the programs in a kubeconfig. If the plan names files by relative paths, the
// working directory is included, because elsewhere they are other files.
func planDigest(e result.Experiment) (string, error) {
	e.NotMeasured, e.Warnings = nil, nil
	whole, err := json.Marshal(e)
	if err != nil {
		return "", err
	}
	specs := specsOf(e)
	text := string(whole)
	for _, c := range reachedResources(e, specs) {
		text += "\n" + c.String()
	}
	relative := func(name string) bool { return !filepath.IsAbs(name) }
	if slices.ContainsFunc(files(e, specs), relative) {
		directory, err := os.Getwd()
		if err == nil {
			directory, err = filepath.EvalSymlinks(directory)
		}
		if err != nil {
			return "", err
		}
		text += "\n" + directory
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text))), nil
}

// ownExperiments returns the name of the file with the digests of this user's experiments, one a line, and its content.
// A file that others may write is an error.
func ownExperiments() (name string, digests []string, err error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", nil, err
		}
		state = filepath.Join(home, ".local", "state")
	}
	name = filepath.Join(state, "knotmeter", "experiments")
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return name, nil, nil
	case err != nil:
		return "", nil, err
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0:
		return "", nil, fmt.Errorf("%s is not a file that only its owner may write; remove it to begin a new one", name)
	}
	data, err := os.ReadFile(name)
	return name, strings.Fields(string(data)), err
}

// rememberExperiment adds an experiment to those of this user. If their file cannot be read, it does nothing: the user
// will be asked when the experiment is resumed.
func rememberExperiment(e result.Experiment) error {
	own, err := planDigest(e)
	if err != nil {
		return nil
	}
	name, digests, err := ownExperiments()
	if err != nil || slices.Contains(digests, own) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("remember the experiment: %w", err)
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("remember the experiment: %w", err)
	}
	_, err = file.WriteString(own + "\n")
	return errors.Join(err, file.Close())
}
