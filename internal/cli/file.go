package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/pflag"

	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/userfile"
)

const (
	fileAPIVersion = "knotmeter/v1"
	fileKind       = "Experiment"
)

// fileType returns the type of an experiment file: a field for each setting that has one, and a section for each kind
// of target whose options have fields.
func fileType() reflect.Type {
	fields := []reflect.StructField{fileField("apiVersion", "", textType), fileField("kind", "", textType)}
	for _, s := range settings {
		if s.field != "" {
			fields = append(fields, fileField(s.field, s.flag, s.fieldType()))
		}
	}
	for _, k := range registry.Kinds() {
		var section []reflect.StructField
		for _, o := range k.Options {
			if o.Field != "" {
				section = append(section, fileField(o.Field, o.Name, optionTypes[o.Value]))
			}
		}
		if k.Section != "" {
			fields = append(fields, fileField(k.Section, "", reflect.StructOf(section)))
		}
	}
	return reflect.StructOf(fields)
}

var textType = reflect.TypeFor[string]()

// optionTypes are the field types of options, by the kind of their value.
var optionTypes = map[targets.Value]reflect.Type{
	targets.Text: textType, targets.File: textType, targets.Switch: reflect.TypeFor[bool](),
	targets.List: reflect.TypeFor[[]string](), targets.Document: reflect.TypeFor[json.RawMessage](),
}

// fileField returns a field of an experiment file. Its tag "flag" is the name of the flag that it sets, if any.
func fileField(name, flag string, of reflect.Type) reflect.StructField {
	tag := fmt.Sprintf(`json:%q flag:%q`, name, flag)
	return reflect.StructField{Name: goName(name), Type: of, Tag: reflect.StructTag(tag)}
}

// goName returns the Go name of a field of an experiment file.
func goName(field string) string { return strings.ToUpper(field[:1]) + field[1:] }

// readFile sets the flags that are not on the command line from the fields of the experiment file.
func (o *options) readFile() error {
	if o.file == "" {
		return nil
	}
	data, err := userfile.Read(o.file, userfile.Limit)
	if err != nil {
		return fmt.Errorf("--file: %w", err)
	}
	file := reflect.New(fileType())
	if err := userfile.Decode(data, file.Interface()); err != nil {
		return fmt.Errorf("--file: %s: %w", o.file, err)
	}
	if err := o.take(file.Elem()); err != nil {
		return fmt.Errorf("--file: %s: %w", o.file, err)
	}
	return nil
}

// take sets the options from an experiment file, a value of [fileType].
func (o *options) take(file reflect.Value) error {
	if file.Field(0).String() != fileAPIVersion || file.Field(1).String() != fileKind {
		return fmt.Errorf("want apiVersion: %s and kind: %s", fileAPIVersion, fileKind)
	}
	if !o.flags.Changed(targetFlag) {
		o.fileTargets = file.FieldByName("Targets").Interface().([]fileTarget)
	}
	o.fileRestores = !o.flags.Changed("restore")
	if err := setFlags(o.flags, file); err != nil {
		return err
	}
	for _, k := range registry.Kinds() {
		if k.Section == "" {
			continue
		}
		section := file.FieldByName(goName(k.Section))
		if err := errors.Join(setFlags(o.flags, section), o.kinds.setDocuments(k, section)); err != nil {
			return fmt.Errorf("%s: %w", k.Section, err)
		}
	}
	return nil
}

// setFlags sets the flags that are not on the command line from the fields for them.
func setFlags(flags *pflag.FlagSet, fields reflect.Value) error {
	// A number of blocks on the command line replaces the looks of the file, and the other way round.
	replaced := map[string]bool{"looks": flags.Changed("blocks"), "blocks": flags.Changed("looks")}
	for i := range fields.NumField() {
		tag := fields.Type().Field(i).Tag
		name := tag.Get("flag")
		if name == "" || flags.Lookup(name) == nil || flags.Changed(name) || replaced[name] || fields.Field(i).IsZero() {
			continue
		}
		if err := setFlag(flags, name, fields.Field(i)); err != nil {
			return fmt.Errorf("%s: %w", tag.Get("json"), err)
		}
	}
	return nil
}

func setFlag(flags *pflag.FlagSet, name string, v reflect.Value) error {
	if v.Kind() == reflect.Slice {
		for i := range v.Len() {
			if err := flags.Set(name, fmt.Sprint(v.Index(i).Interface())); err != nil {
				return err
			}
		}
		return nil
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return flags.Set(name, fmt.Sprint(v.Interface()))
}
