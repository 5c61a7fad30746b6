package cli

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/pflag"

	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/userfile"
)

const (
	fileAPIVersion = "knotmeter/v1"
	fileKind       = "Experiment"
)

// fileType is the type of an experiment file: a field for each setting that has one, and a section for each kind of target whose
// options have some. The tag flag names the flag that a field stands for.
func fileType() reflect.Type {
	text := reflect.TypeFor[string]()
	fields := []reflect.StructField{fileField("apiVersion", "", text), fileField("kind", "", text)}
	for _, s := range runSettings {
		if s.field != "" {
			fields = append(fields, fileField(s.field, s.flag, s.fieldType()))
		}
	}
	for _, k := range registry.Kinds() {
		if k.Section != "" {
			fields = append(fields, fileField(k.Section, "", sectionType(k.Options)))
		}
	}
	return reflect.StructOf(fields)
}

// sectionType is the type of a section of an experiment file.
func sectionType(options []target.Option) reflect.Type {
	types := map[target.Value]reflect.Type{
		target.Text: reflect.TypeFor[string](), target.File: reflect.TypeFor[string](), target.Switch: reflect.TypeFor[bool](),
		target.List: reflect.TypeFor[[]string](), target.Document: reflect.TypeFor[json.RawMessage](),
	}
	var fields []reflect.StructField
	for _, o := range options {
		flag := ""
		if o.Flag {
			flag = o.Name
		}
		if o.Field != "" {
			fields = append(fields, fileField(o.Field, flag, types[o.Value]))
		}
	}
	return reflect.StructOf(fields)
}

func fileField(name, flag string, of reflect.Type) reflect.StructField {
	tag := fmt.Sprintf(`json:%q flag:%q`, name, flag)
	return reflect.StructField{Name: goName(name), Type: of, Tag: reflect.StructTag(tag)}
}

// goName is what a field of a file is called in Go.
func goName(field string) string { return strings.ToUpper(field[:1]) + field[1:] }

// readFile sets the flags that were not given from the fields of the file.
func (o *options) readFile(flags *pflag.FlagSet) error {
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
	if err := o.take(flags, file.Elem()); err != nil {
		return fmt.Errorf("--file: %s: %w", o.file, err)
	}
	return nil
}

// take sets flags from a file of [fileType].
func (o *options) take(flags *pflag.FlagSet, file reflect.Value) error {
	field := func(of reflect.Value, name string) reflect.Value { return of.FieldByName(goName(name)) }
	if field(file, "apiVersion").String() != fileAPIVersion || field(file, "kind").String() != fileKind {
		return fmt.Errorf("want apiVersion: %s and kind: %s", fileAPIVersion, fileKind)
	}
	if err := setFlags(flags, file); err != nil {
		return err
	}
	for _, k := range registry.Kinds() {
		if k.Section == "" {
			continue
		}
		section := field(file, k.Section)
		if err := setFlags(flags, section); err != nil {
			return fmt.Errorf("%s: %w", k.Section, err)
		}
		for _, option := range k.Options {
			if option.Value != target.Document || option.Field == "" {
				continue
			}
			if err := o.kinds.setDocument(k, option, field(section, option.Field).Bytes()); err != nil {
				return fmt.Errorf("%s: %s: %w", k.Section, option.Field, err)
			}
		}
	}
	return nil
}

// setFlags sets the flags that were not given from the fields that stand for them.
func setFlags(flags *pflag.FlagSet, fields reflect.Value) error {
	// A number of blocks in the command line is instead of the file's looks, and the other way round.
	instead := map[string]bool{"looks": flags.Changed("blocks"), "blocks": flags.Changed("looks")}
	for i := range fields.NumField() {
		tag := fields.Type().Field(i).Tag
		name := tag.Get("flag")
		if name == "" || flags.Lookup(name) == nil || flags.Changed(name) || instead[name] || fields.Field(i).IsZero() {
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
