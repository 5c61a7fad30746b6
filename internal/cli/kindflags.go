package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// kindFlags are flags that set an option of all targets of a kind, such as kubectl's flags for clusters. An option in
// the text of a target takes precedence.
type kindFlags struct {
	set       *pflag.FlagSet           // of the command
	documents map[string][]givenOption // options of an experiment file that have no flag, by kind
}

func (k *kindFlags) register(c *cobra.Command) {
	k.set, k.documents = c.Flags(), map[string][]givenOption{}
	for _, kind := range registry.Kinds() {
		k.set.AddFlagSet(flagsOf(kind))
	}
}

// flagsOf returns the flags of a kind.
func flagsOf(kind registry.Kind) *pflag.FlagSet {
	set := pflag.NewFlagSet(kind.Name, pflag.ContinueOnError)
	set.SortFlags = false
	under := heading(fmt.Sprintf("Flags for %s: targets; options of a target win", kind.Name))
	for _, o := range kind.Options {
		switch {
		case !o.HasFlag():
		case o.Refused != nil:
			set.String(o.Name, "", o.Refused.Error())
			set.Lookup(o.Name).Hidden = true
		case o.Value == targets.Switch:
			set.BoolP(o.Name, o.Short, false, o.Help)
		case o.Value == targets.List:
			set.StringArrayP(o.Name, o.Short, nil, o.Help+"; repeated")
		default:
			set.StringP(o.Name, o.Short, "", o.Help)
		}
		if f := set.Lookup(o.Name); f != nil {
			annotate(f, under, true)
			f.Annotations[argumentOf] = []string{o.Argument()}
		}
	}
	return set
}

// isConnectionFlag reports whether a flag only affects how a target is reached, and is no part of the experiment. It
// includes refused flags, for which specs returns the reason.
func (k *kindFlags) isConnectionFlag(name string) bool {
	return slices.ContainsFunc(registry.Kinds(), func(kind registry.Kind) bool {
		return slices.ContainsFunc(kind.Options, func(o targets.Option) bool {
			return o.HasFlag() && o.Name == name && !o.Planned
		})
	})
}

// specs parses the texts of targets and adds the options from the flags of their kinds.
func (k *kindFlags) specs(texts []string) ([]result.Spec, error) {
	var specs []result.Spec
	for _, text := range texts {
		spec, err := result.ParseSpec(text)
		if err != nil {
			return nil, fmt.Errorf("%w%s", err, prose.DidYouMean(text, knownTargets()))
		}
		specs = append(specs, spec)
	}
	for _, kind := range registry.Kinds() {
		given, err := k.given(kind)
		if err != nil {
			return nil, err
		}
		used := false
		for i, spec := range specs {
			if spec.Kind == kind.Name {
				specs[i], used = withOptions(spec, slices.Concat(given, k.documents[kind.Name])), true
			}
		}
		if !used && len(given) > 0 {
			return nil, fmt.Errorf("--%s: it applies to %s: targets, and there is none; add one, such as %s",
				given[0].Name, kind.Name, kind.Targets[0].Spec)
		}
	}
	return specs, nil
}

// withOptions adds options to those of a target.
func withOptions(spec result.Spec, given []givenOption) result.Spec {
	own := map[string]string{}
	for _, o := range given {
		if !o.ReplacedByName || spec.Name == "" {
			own[o.Name] = o.value
		}
	}
	return spec.With(own)
}

// A givenOption is an option that a flag or an experiment file sets for all targets of a kind.
type givenOption struct {
	targets.Option
	value string
}

// given returns the options that flags set for targets of a kind. As with kubectl, an empty text sets none.
func (k *kindFlags) given(kind registry.Kind) ([]givenOption, error) {
	var list []givenOption
	for _, o := range kind.Options {
		if !o.HasFlag() || !k.set.Changed(o.Name) {
			continue
		}
		if o.Refused != nil {
			return nil, fmt.Errorf("--%s: %w", o.Name, o.Refused)
		}
		value, err := k.value(o)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", o.Name, err)
		}
		if value != "" {
			list = append(list, givenOption{o, value})
		}
	}
	return list, nil
}

// value returns the value of a flag in the form of its option.
func (k *kindFlags) value(o targets.Option) (string, error) {
	switch o.Value {
	case targets.Switch:
		on, err := k.set.GetBool(o.Name)
		if on {
			return "yes", err
		}
		return "no", err
	case targets.List:
		list, err := k.set.GetStringArray(o.Name)
		return targets.JoinList(list), err
	}
	return k.set.GetString(o.Name)
}

// setDocuments sets the options whose values are documents. They have no flags, only fields in the section of an
// experiment file.
func (k *kindFlags) setDocuments(kube registry.Kind, section kubernetesSection) error {
	text := string(section.Pods)
	if text == "" || text == "null" {
		return nil
	}
	for _, o := range kube.Options {
		if o.Field != "pods" {
			continue
		}
		if err := o.Check(text); err != nil {
			return fmt.Errorf("%s: %w", o.Field, err)
		}
		k.documents[kube.Name] = append(k.documents[kube.Name], givenOption{o, text})
	}
	return nil
}
