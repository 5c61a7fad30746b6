package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/target"
)

// kindFlags are the flags that stand for an option of all targets of a kind, such as kubectl's for clusters. An
// option in the text of a target wins.
type kindFlags struct {
	set  *pflag.FlagSet // of the command
	pods string         // of the experiment file, for the option config
}

func (k *kindFlags) register(c *cobra.Command) {
	k.set = c.Flags()
	var groups []flagGroup
	for _, kind := range registry.Kinds() {
		set := flagsOf(kind)
		k.set.AddFlagSet(set)
		groups = append(groups, flagGroup{fmt.Sprintf("Flags for %s: targets that do not say otherwise:", kind.Name), set})
	}
	c.SetUsageFunc(func(c *cobra.Command) error { return usageInGroups(c, groups) })
}

// A flagGroup is flags that the help shows apart.
type flagGroup struct {
	title string
	flags *pflag.FlagSet
}

// flagsOf are the flags of a kind.
func flagsOf(kind registry.Kind) *pflag.FlagSet {
	set := pflag.NewFlagSet(kind.Name, pflag.ContinueOnError)
	for _, f := range kind.Flags {
		switch f.Takes {
		case target.Switch:
			set.BoolP(f.Name, f.Short, false, f.About)
		case target.List:
			set.StringArrayP(f.Name, f.Short, nil, f.About)
		default:
			set.StringP(f.Name, f.Short, "", f.About)
		}
	}
	for _, name := range kind.SecretFlags {
		set.String(name, "", "refused: say it in a kubeconfig")
		set.Lookup(name).Hidden = true
	}
	return set
}

// usageInGroups writes what the library does, with the groups after the other flags.
func usageInGroups(c *cobra.Command, groups []flagGroup) error {
	var shown []*pflag.Flag
	for _, g := range groups {
		g.flags.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				shown = append(shown, f)
				f.Hidden = true
			}
		})
	}
	err := new(cobra.Command).UsageFunc()(c)
	for _, f := range shown {
		f.Hidden = false
	}
	for _, g := range groups {
		if text := g.flags.FlagUsages(); text != "" {
			c.Printf("\n%s\n%s", g.title, text)
		}
	}
	return err
}

// reach says whether a flag is about the way to a target, and so no part of the experiment. Those that are refused are too:
// specs says why.
func (k *kindFlags) reach(name string) bool {
	return slices.ContainsFunc(registry.Kinds(), func(kind registry.Kind) bool {
		return slices.ContainsFunc(kind.Flags, func(f target.Flag) bool { return f.Name == name && !f.Fixed }) || slices.Contains(kind.SecretFlags, name)
	})
}

// specs reads the texts of targets, each with what the flags say about its kind.
func (k *kindFlags) specs(texts []string) ([]target.Spec, error) {
	var specs []target.Spec
	for _, text := range texts {
		spec, err := target.ParseSpec(text)
		if err != nil {
			return nil, fmt.Errorf("--target: %w", err)
		}
		specs = append(specs, spec)
	}
	for _, kind := range registry.Kinds() {
		options, err := k.options(kind)
		if err != nil {
			return nil, err
		}
		used := false
		for i, spec := range specs {
			if spec.Kind == kind.Name {
				specs[i], used = k.with(kind, spec, options), true
			}
		}
		for _, f := range kind.Flags {
			if _, given := options[f.Name]; given && !used {
				return nil, fmt.Errorf("--%s: it is about targets of the kind %s, and there is none; --target %s:NAME names one", f.Name, kind.Name, kind.Name)
			}
		}
	}
	return specs, nil
}

// with adds options to those of a target. Its own name is a context too.
func (k *kindFlags) with(kind registry.Kind, spec target.Spec, options map[string]string) target.Spec {
	own := map[string]string{}
	for name, value := range options {
		if name != "context" || spec.Name == "" {
			own[name] = value
		}
	}
	if kind.CheckPods != nil && k.pods != "" {
		own["config"] = k.pods
	}
	return spec.With(own)
}

// setPods takes from an experiment file what clusters want of pods.
func (k *kindFlags) setPods(text []byte) error {
	if len(text) == 0 || string(text) == "null" {
		return nil
	}
	for _, kind := range registry.Kinds() {
		if kind.CheckPods == nil {
			continue
		}
		if err := kind.CheckPods(text); err != nil {
			return fmt.Errorf("kubernetes: pods: %w", err)
		}
	}
	k.pods = string(text)
	return nil
}

// options are those that the flags give to targets of a kind. An empty text gives none, as with kubectl.
func (k *kindFlags) options(kind registry.Kind) (map[string]string, error) {
	for _, name := range kind.SecretFlags {
		if k.set.Changed(name) {
			return nil, fmt.Errorf("--%s: %w", name, kind.ErrSecret)
		}
	}
	options := map[string]string{}
	for _, f := range kind.Flags {
		if !k.set.Changed(f.Name) {
			continue
		}
		value, err := k.value(f)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", f.Name, err)
		}
		if value != "" {
			options[f.Name] = value
		}
	}
	return options, nil
}

// value is a flag as the value of an option.
func (k *kindFlags) value(f target.Flag) (string, error) {
	switch f.Takes {
	case target.Switch:
		on, err := k.set.GetBool(f.Name)
		if on {
			return "yes", err
		}
		return "no", err
	case target.List:
		list, err := k.set.GetStringArray(f.Name)
		return target.JoinList(list), err
	}
	return k.set.GetString(f.Name)
}
