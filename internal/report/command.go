package report

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// command returns the command line that repeats an experiment: the command, then each flag with its value. It is nil
// without targets and for unpaired comparisons: no command repeats imported runs or several experiments.
func command(in Input) []string {
	e := in.Experiment
	if !in.Comparison.Paired || len(e.Targets) == 0 {
		return nil
	}
	args := []string{"knotmeter run"}
	add := func(flag string, values ...string) {
		for _, value := range values {
			if value != "" {
				args = append(args, flag+" "+quote(value))
			}
		}
	}
	for _, t := range e.Targets {
		add("--target", t.Spec.Text)
	}
	limit := 0.0
	for _, t := range e.Targets {
		if t.Switch != nil {
			add("--switch", t.Name+"="+t.Switch.Text)
			limit = t.Switch.Limit
		}
	}
	if e.Restore != nil {
		add("--restore", e.Restore.Text)
	}
	if limit > 0 {
		add("--switch-limit", seconds(limit).String())
	}
	if e.Baseline != e.Targets[0].Name {
		add("--baseline", e.Baseline)
	}
	add("--suite", e.Suite)
	add("--case", e.Chosen...)
	add("--primary", e.Primaries...)
	add("--metric", e.Metric)
	add("--tool", e.Tool)
	if len(e.Design.Looks) > 0 {
		add("--looks", strings.Join(integerTexts(e.Design.Looks), ","))
	} else {
		add("--blocks", strconv.Itoa(e.Design.Blocks))
	}
	if e.Design.Budget > 0 {
		add("--budget", seconds(e.Design.Budget).String())
	}
	if e.Design.AllPairs {
		args = append(args, "--all-pairs")
	}
	if e.Design.Parallel {
		args = append(args, "--parallel")
	}
	add("--gate", e.Gates...)
	add("--duration", seconds(e.Design.Duration).String())
	add("--warmup", seconds(e.Design.Warmup).String())
	add("--alpha", fmt.Sprint(e.Design.Alpha))
	add("--delta", fmt.Sprintf("%g%%", e.Design.Delta*100))
	add("--seed", strconv.FormatUint(e.Seed, 10))
	return args
}

// shellSafe matches arguments that a shell does not change.
var shellSafe = regexp.MustCompile(`^[\w./:=,+%@-]+$`)

// quote quotes an argument for a shell.
func quote(arg string) string {
	if shellSafe.MatchString(arg) {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// integerTexts formats integers.
func integerTexts(list []int) []string {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = strconv.Itoa(n)
	}
	return texts
}
