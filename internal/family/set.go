package family

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A Set is a tool that consists of several: the first that supports a workload runs it.
type Set []Tool

// Name returns the tools' names, in their order, separated by commas.
func (s Set) Name() string {
	names := make([]string, len(s))
	for i, t := range s {
		names[i] = t.Name()
	}
	return strings.Join(names, ",")
}

// Supports returns nil if one of the tools supports w, else an error with the reason of each.
func (s Set) Supports(w Workload) error {
	var reasons []string
	for _, t := range s {
		err := t.Supports(w)
		if err == nil {
			return nil
		}
		reasons = append(reasons, t.Name()+": "+err.Error())
	}
	return result.NotSupported(strings.Join(reasons, "; "))
}

// Program returns the program of the first tool that supports w.
func (s Set) Program(w Workload) string {
	t := ToolFor(s, w)
	if t == nil {
		return ""
	}
	return t.Program(w)
}

// Metrics returns the metrics of the first tool that supports w.
func (s Set) Metrics(w Workload) []metric.Metric {
	if t := ToolFor(s, w); t != nil {
		return t.Metrics(w)
	}
	return nil
}

// Run runs w with the first tool that supports it.
func (s Set) Run(ctx context.Context, p host.Pair, w Workload, t Times) (result.Measurement, error) {
	tool := ToolFor(s, w)
	if tool == nil {
		return result.Measurement{}, s.Supports(w)
	}
	return tool.Run(ctx, p, w, t)
}

// ToolFor returns the tool that runs w: of a [Set] the first that supports w, nil if none does; else t itself.
func ToolFor(t Tool, w Workload) Tool {
	set, is := t.(Set)
	if !is {
		return t
	}
	i := slices.IndexFunc(set, func(t Tool) bool { return t.Supports(w) == nil })
	if i < 0 {
		return nil
	}
	return set[i]
}

// Only returns the tools of t with these names, in their order. The names are separated by commas, as in [Set.Name].
func Only(t Tool, names string) (Tool, error) {
	if t.Name() == names {
		return t, nil
	}
	set, is := t.(Set)
	if !is {
		return nil, fmt.Errorf("the tool is %s, not %s", t.Name(), names)
	}
	var part Set
	var errs []error
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(set, func(t Tool) bool { return t.Name() == name })
		if i < 0 {
			errs = append(errs, fmt.Errorf("there is no %q; there are %s",
				name, prose.Choices(name, strings.Split(set.Name(), ","))))
			continue
		}
		part = append(part, set[i])
	}
	return part, errors.Join(errs...)
}
