package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/plan"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
)

// A fileTarget is a target in an experiment file: its text alone, or together with the command that puts it in place.
type fileTarget struct {
	Target string `json:"target"`
	Switch string `json:"switch"`
}

// String returns the text of the target, as the flag takes it.
func (t fileTarget) String() string { return t.Target }

// UnmarshalJSON reads the text of a target, or an object with its text and command.
func (t *fileTarget) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(data, []byte("{")) {
		return json.Unmarshal(data, &t.Target)
	}
	type fields fileTarget
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode((*fields)(t)); err != nil {
		return err
	}
	if t.Target == "" {
		return errors.New("targets: one has no target")
	}
	return nil
}

// switchLimit is the default time limit of a switch.
const switchLimit = 10 * time.Minute

// switches sets the switches of targets and returns the command that restores the testbed. Commands of the experiment
// file run in its directory, others in the working directory.
func (o *options) switches(targets []runner.Target) (restore *result.Command, err error) {
	for i, t := range o.fileTargets {
		if t.Switch == "" {
			continue
		}
		if targets[i].Switch, err = o.command(t.Switch, true); err != nil {
			return nil, err
		}
	}
	var names []string
	for _, t := range targets {
		names = append(names, t.Name)
	}
	given := map[string]bool{}
	for _, text := range o.switchTexts {
		i, command := parseSwitch(text, targets)
		switch {
		case i < 0:
			return nil, fmt.Errorf("--switch: %q is not TARGET=COMMAND with the name of a target; the targets are %s",
				text, strings.Join(names, ", "))
		case strings.TrimSpace(command) == "":
			return nil, fmt.Errorf("--switch: %s has no command; ':' does nothing", targets[i].Name)
		case given[targets[i].Name]:
			return nil, fmt.Errorf("--switch: %s has two commands; join them with &&", targets[i].Name)
		}
		given[targets[i].Name] = true
		if targets[i].Switch, err = o.command(command, false); err != nil {
			return nil, err
		}
	}
	if o.restore == "" {
		return nil, nil
	}
	return o.command(o.restore, o.fileRestores)
}

// parseSwitch parses TARGET=COMMAND, where the name of the target may contain "=". It returns the target's index, or -1
// if there is none.
func parseSwitch(text string, targets []runner.Target) (at int, command string) {
	at = -1
	for i, t := range targets {
		rest, is := strings.CutPrefix(text, t.Name+"=")
		if is && (at < 0 || len(t.Name) > len(targets[at].Name)) {
			at, command = i, rest
		}
	}
	return at, command
}

// command returns a command with its time limit and working directory: the directory of the experiment file if ofFile
// is set, otherwise the current one.
func (o *options) command(text string, ofFile bool) (*result.Command, error) {
	in, err := os.Getwd()
	if ofFile {
		in, err = filepath.Abs(filepath.Dir(o.file))
	}
	return &result.Command{Text: text, Directory: in, Limit: o.switchLimit.Seconds()}, err
}

// commandsOf returns the commands of an experiment, each with its purpose.
func commandsOf(e result.Experiment) []plan.Concern {
	var list []plan.Concern
	for _, t := range e.Targets {
		if t.Switch != nil {
			list = append(list, concern("the command "+shellCommand(*t.Switch), "it puts "+t.Name+" in place"))
		}
	}
	if e.Restore != nil {
		list = append(list, concern("the command "+shellCommand(*e.Restore), "it restores the testbed"))
	}
	return list
}

// shellCommand returns a command as it can be pasted into a shell.
func shellCommand(c result.Command) string {
	words := func(args ...string) string { return host.Cmd{Args: args}.String() }
	return "(" + words("cd", c.Directory) + " && " + words("sh", "-c", c.Text) + ")"
}

// announceSwitches prints the commands that will run.
func announceSwitches(w io.Writer, e result.Experiment) {
	for _, c := range commandsOf(e) {
		fmt.Fprintf(w, "Runs %s\n", c)
	}
}

// notRestored returns an error if the testbed could not be restored, else nil.
func notRestored(e result.Experiment, s runner.Summary) error {
	if s.NotRestored == "" {
		return nil
	}
	return failure("the testbed was not restored: %s; run by hand: %s", s.NotRestored, shellCommand(*e.Restore))
}
