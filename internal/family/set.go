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

// A Set is several tools as one: each workload is carried out by the first of them that can.
type Set []Tool

// Name is the tools' names, in their order, with commas between.
func (s Set) Name() string {
	names := make([]string, len(s))
	for i, t := range s {
		names[i] = t.Name()
	}
	return strings.Join(names, ",")
}

// Supports is nil if one of them can; else it says of each why not.
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

// Program is that of the first that can.
func (s Set) Program(w Workload) string {
	t := For(s, w)
	if t == nil {
		return ""
	}
	return t.Program(w)
}

// Metrics are those of the first that can do it.
func (s Set) Metrics(w Workload) []metric.Metric {
	if t := For(s, w); t != nil {
		return t.Metrics(w)
	}
	return nil
}

// Run lets the first that can do it.
func (s Set) Run(ctx context.Context, p host.Pair, w Workload, t Times) (result.Measurement, error) {
	by := For(s, w)
	if by == nil {
		return result.Measurement{}, s.Supports(w)
	}
	return by.Run(ctx, p, w, t)
}

// For is the tool that carries out w: of a [Set] the first that can, nil if none; else t itself.
func For(t Tool, w Workload) Tool {
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

// Only is the part of t with these names, in their order, as [Set.Name] writes them.
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
