package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/userfile"
)

const (
	fileAPIVersion = "knotmeter/v1"
	fileKind       = "Experiment"
)

// readFile sets the flags that are not on the command line from the experiment file. Without --file it does nothing.
func (o *options) readFile(ctx context.Context) error {
	if o.file == "" {
		return nil
	}
	data, err := await(ctx, func() ([]byte, error) { return userfile.Read(o.file, userfile.Limit) })
	if err != nil {
		return fmt.Errorf("--file: %w", err)
	}
	if err := userfile.Decode(data, &experimentFile{o}); err != nil {
		return fmt.Errorf("--file: %s: %w", o.file, err)
	}
	return nil
}

// An experimentFile sets options from the content of an experiment file: a field for each of the [settings] that has
// one, and a section for the options of Kubernetes targets.
type experimentFile struct{ *options }

// UnmarshalJSON sets the options from an object.
func (f *experimentFile) UnmarshalJSON(data []byte) error {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	maps.DeleteFunc(fields, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	if string(fields["apiVersion"]) != `"`+fileAPIVersion+`"` || string(fields["kind"]) != `"`+fileKind+`"` {
		return fmt.Errorf("want apiVersion: %s and kind: %s", fileAPIVersion, fileKind)
	}
	known := []string{"apiVersion", "kind", "kubernetes"}
	given := map[string]bool{} // flags on the command line
	f.flags.Visit(func(flag *pflag.Flag) { given[flag.Name] = true })
	f.fileRestores = !given["restore"]
	for _, s := range settings {
		known = append(known, s.field)
		value, is := fields[s.field]
		if !is || f.flags.Lookup(s.flag) == nil || given[s.flag] || given[s.replacedBy] {
			continue
		}
		if err := f.set(s, value); err != nil {
			return inField(s.field, err)
		}
	}
	if err := checkFields(fields, known); err != nil {
		return err
	}
	return f.setKubernetes(fields["kubernetes"])
}

// set sets the flag of a setting to the value of its field.
func (f *experimentFile) set(s setting, value json.RawMessage) (err error) {
	var several []string
	switch p := s.value(f.options).(type) {
	case *commaList:
		if value[0] == '{' {
			err = json.Unmarshal(value, &several) // an error that wants a list
			break
		}
		several, err = texts(value)
	case pflag.Value, *time.Duration, *string:
		several, err = texts(value)
	case *[]string:
		if s.flag != targetFlag {
			err = json.Unmarshal(value, &several)
			break
		}
		err = json.Unmarshal(value, &f.fileTargets)
		for _, t := range f.fileTargets {
			several = append(several, t.Target)
		}
	default:
		f.flags.Lookup(s.flag).Changed = true
		return json.Unmarshal(value, p)
	}
	for _, text := range several {
		err = errors.Join(err, f.flags.Set(s.flag, text))
	}
	return err
}

// texts returns a text, a number or a list of texts, as flags take them.
func texts(value json.RawMessage) (list []string, err error) {
	var number json.Number
	switch {
	case value[0] == '[':
		err = json.Unmarshal(value, &list)
		return list, err
	case value[0] != '"' && json.Unmarshal(value, &number) == nil:
		return []string{number.String()}, nil
	}
	list = []string{""}
	err = json.Unmarshal(value, &list[0])
	return list, err
}

// setKubernetes sets the options of Kubernetes targets from their section.
func (f *experimentFile) setKubernetes(section json.RawMessage) error {
	if len(section) == 0 {
		return nil
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(section, &fields); err != nil {
		return inField("kubernetes", err)
	}
	kube, err := registry.FindKind("kube")
	if err != nil {
		return err
	}
	f.kubernetes = map[string]string{}
	var known []string
	for _, option := range kube.Options {
		known = append(known, option.Field)
		value, is := fields[option.Field]
		if !is {
			continue
		}
		text, err := optionText(option, value)
		if err == nil {
			err = option.Check(text)
		}
		if err != nil {
			return inField("kubernetes", inField(option.Field, err))
		}
		f.kubernetes[option.Name] = text
	}
	return checkFields(fields, known)
}

// optionText returns the value of a field in the form of its option.
func optionText(option targets.Option, value json.RawMessage) (text string, err error) {
	switch option.Value {
	case targets.Document:
		return string(value), nil
	case targets.Switch:
		on := false
		if err = json.Unmarshal(value, &on); on {
			return "yes", err
		}
		return "no", err
	case targets.List:
		list, err := texts(value)
		return targets.JoinList(list), err
	}
	if value[0] != '"' && value[0] != '[' && value[0] != '{' {
		return string(value), nil // such as a UID
	}
	err = json.Unmarshal(value, &text)
	return text, err
}

// checkFields returns an error about the first field that is not known.
func checkFields(fields map[string]json.RawMessage, known []string) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name == "" || !slices.Contains(known, name) {
			return fmt.Errorf("unknown field %q", name)
		}
	}
	return nil
}

// inField adds the name of a field to an error about its value; nil stays nil.
func inField(name string, err error) error {
	if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		wrong.Field = strings.TrimSuffix(name+"."+wrong.Field, ".")
		return wrong
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
