package cli

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/plan"
	"github.com/knotmeter/knotmeter/internal/report"
	"github.com/knotmeter/knotmeter/internal/report/reporttest"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/store"
)

const schemas = "../../docs/schema"

// schemaNames returns the Go types of the published schemas, by file name.
func schemaNames() map[string]reflect.Type {
	return map[string]reflect.Type{
		"comparison-v1.json": reflect.TypeFor[report.Document](),
		"experiment-v2.json": reflect.TypeFor[result.Experiment](),
		"run-v2.json":        reflect.TypeFor[result.Run](),
		"site-v1.json":       reflect.TypeFor[result.Site](),
		"session-v1.json":    reflect.TypeFor[result.Session](),
		"switch-v1.json":     reflect.TypeFor[result.Switch](),
		"facts-v1.json":      reflect.TypeFor[[]result.Fact](),
		"plan-v1.json":       reflect.TypeFor[plan.Document](),
		"audit-v1.json":      reflect.TypeFor[report.AuditDocument](),
		"doctor-v1.json":     reflect.TypeFor[diagnosis](),
		"list-v1.json":       reflect.TypeFor[listing](),
	}
}

type object = map[string]any

// readSchemas returns the published schemas by file name.
func readSchemas(t *testing.T) map[string]object {
	t.Helper()
	all := map[string]object{}
	files, err := filepath.Glob(filepath.Join(schemas, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[filepath.Base(file)] = schema.(object)
	}
	if got, want := slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(schemaNames())); !slices.Equal(got, want) {
		t.Fatalf("%s holds %q, and the tests know %q", schemas, got, want)
	}
	return all
}

// compiled returns the compiled schemas. If strict, unlisted fields are errors; the published schemas allow them, so
// that readers accept results of later versions.
func compiled(t *testing.T, strict bool) map[string]*jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	documents := readSchemas(t)
	for _, document := range documents {
		if strict {
			forbidOthers(document)
		}
		if err := compiler.AddResource(document["$id"].(string), document); err != nil {
			t.Fatal(err)
		}
	}
	all := map[string]*jsonschema.Schema{}
	for name, document := range documents {
		schema, err := compiler.Compile(document["$id"].(string))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = schema
	}
	return all
}

// forbidOthers forbids unlisted fields everywhere in a schema.
func forbidOthers(node any) {
	switch n := node.(type) {
	case object:
		if n["type"] == "object" && n["properties"] != nil {
			n["additionalProperties"] = false
		}
		for _, child := range n {
			forbidOthers(child)
		}
	case []any:
		for _, child := range n {
			forbidOthers(child)
		}
	}
}

func validate(t *testing.T, schema *jsonschema.Schema, name string, text []byte) {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := schema.Validate(document); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func TestSchemasDescribeWhatIsWritten(t *testing.T) {
	experiments(t)
	all := compiled(t, true)
	dir := writtenExperiment(t, "first")
	read := func(elements ...string) []byte {
		text, err := os.ReadFile(filepath.Join(append([]string{dir}, elements...)...))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	validate(t, all["experiment-v2.json"], store.ExperimentFile, read(store.ExperimentFile))
	for i, line := range strings.Split(strings.TrimSuffix(string(read(store.RunsFile)), "\n"), "\n") {
		validate(t, all["run-v2.json"], fmt.Sprintf("%s:%d", store.RunsFile, i+1), []byte(line))
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(read(store.SitesFile)), "\n"), "\n") {
		validate(t, all["site-v1.json"], fmt.Sprintf("%s:%d", store.SitesFile, i+1), []byte(line))
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(read(store.SwitchesFile)), "\n"), "\n") {
		validate(t, all["switch-v1.json"], fmt.Sprintf("%s:%d", store.SwitchesFile, i+1), []byte(line))
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(read(store.SessionsFile)), "\n"), "\n") {
		validate(t, all["session-v1.json"], fmt.Sprintf("%s:%d", store.SessionsFile, i+1), []byte(line))
	}
	entries, err := os.ReadDir(filepath.Join(dir, store.FactsDir))
	if err != nil || len(entries) == 0 {
		t.Fatalf("%d files of facts, %v", len(entries), err)
	}
	for _, entry := range entries {
		validate(t, all["facts-v1.json"], entry.Name(), read(store.FactsDir, entry.Name()))
	}
	validate(t, all["comparison-v1.json"], "compare", knotmeterPrints(t, "compare", dir, "-o", "json"))
	validate(t, all["comparison-v1.json"], "compare of two",
		knotmeterPrints(t, "compare", dir, writtenExperiment(t, "second"), "-o", "json"))
	validate(t, all["comparison-v1.json"], "compare of one target",
		knotmeterPrints(t, "compare", writtenExperiment(t, "alone", reporttest.Native), "-o", "json"))
	validate(t, all["comparison-v1.json"], "beside a publication",
		knotmeterPrints(t, "compare", dir, "--reference", "daocloud-cni", "-o", "json"))
	validate(t, all["audit-v1.json"], "audit", knotmeterPrints(t, "audit", dir,
		"../published/page/testdata/aks-cilium.txt", "../published/page/testdata/transposed.md", "-o", "json"))
	validate(t, all["plan-v1.json"], "plan", knotmeterPrints(t, "plan", "--target",
		"lab:native", "--target", "lab:vxlan", "--suite", "network:quick", "-o", "json"))
	validate(t, all["plan-v1.json"], "plan of few", knotmeterPrints(t, "plan", "--target",
		"lab:native", "--target", "lab:vxlan", "--suite", "network:quick", "--blocks", "2", "-o", "json"))
	validate(t, all["doctor-v1.json"], "doctor", knotmeterPrints(t, "doctor", "-o", "json"))
	validate(t, all["doctor-v1.json"], "doctor of two",
		knotmeterPrints(t, "doctor", "lab:host", "local:"+t.TempDir(), "-o", "json"))
	validate(t, all["list-v1.json"], "list", knotmeterPrints(t, "list", "-o", "json"))
	validate(t, all["list-v1.json"], "list of tools", knotmeterPrints(t, "list", "tools", "-o", "json"))
}

func TestSchemasDescribeTheGoldenFiles(t *testing.T) {
	files, err := filepath.Glob("../report/testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	schema := compiled(t, true)["comparison-v1.json"]
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte(compare.Schema)) {
			validate(t, schema, file, text)
		}
	}
}

// TestPublishedSchemasAreOpen checks that the published schema accepts a field that a later version adds, and rejects a
// document without a required one.
func TestPublishedSchemasAreOpen(t *testing.T) {
	schema := compiled(t, false)["facts-v1.json"]
	for text, ok := range map[string]bool{
		`[{"name":"mtu","value":"1500","since":"boot"}]`: true,
		`[{"name":"mtu"}]`:                false,
		`[{"name":"mtu","value":1500}]`:   false,
		`{"name":"mtu","value":"1500"}`:   false,
		`[{"name":"","value":"unknown"}]`: false,
	} {
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(document); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// writtenExperiment writes a results directory with every kind of file, for all targets or only for some.
func writtenExperiment(t *testing.T, id string, only ...string) string {
	t.Helper()
	r, err := reporttest.Network()
	if err != nil {
		t.Fatal(err)
	}
	e, runs, facts := r.Experiment, r.Runs, r.Facts
	e.ID = id
	left := func(target string) bool { return len(only) > 0 && !slices.Contains(only, target) }
	e.Targets = slices.DeleteFunc(e.Targets, func(t result.Target) bool { return left(t.Name) })
	runs = slices.DeleteFunc(runs, func(r result.Run) bool { return left(r.Target) })
	e.Design.Looks, e.Design.Budget, e.Gates = []int{8, 11}, 600, []string{"pod-pod/*/tcp-rr p99 <= +5%"}
	e.Restore = &result.Command{Text: "./cni.sh default", Directory: "/srv", Limit: 600}
	e.Targets = slices.Clone(e.Targets)
	for i := range e.Targets {
		e.Targets[i].Switch = &result.Command{Text: "./cni.sh", Directory: "/srv", Limit: 600}
	}
	dir := filepath.Join(t.TempDir(), "results")
	w, err := store.Create(dir, e)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for target, list := range facts {
		if err := w.WriteFacts(target, list); err != nil {
			t.Fatal(err)
		}
	}
	for i, run := range runs[:60] {
		if i%30 == 0 {
			if err := w.WriteSession(result.Session{Start: run.Start, Version: fmt.Sprint("v", i), Facts: facts}); err != nil {
				t.Fatal(err)
			}
		}
		run.Series = []result.Series{{Name: "rate", Unit: "op/s", Step: 0.1, Values: []float64{1, 2}}}
		run.Facts = []result.Fact{{Name: "mtu", Value: "1500"}}
		if err := w.Append(run, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []result.Switch{
		{Target: e.Baseline, Block: 1, Start: runs[0].Start, Took: 3, Ready: 2, Output: "done\n", Facts: facts[e.Baseline]},
		{Start: runs[0].Start, Took: 1, Failed: "exit status 1"},
	} {
		if _, err := w.WriteSwitch(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range r.Sites[:3] {
		if s.Values = []result.Value{result.NewValue(metric.Named(metric.Pods), 4)}; left(s.Target) {
			continue
		}
		s.Warnings = []result.Warning{{Code: result.SiteNotRemoved, Text: "a pod is left"}}
		if err := w.WriteSite(s); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// knotmeterPrints runs the program and returns its output.
func knotmeterPrints(t *testing.T, args ...string) []byte {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), programVariable+"=1")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	text, err := cmd.Output()
	// Gates affect the exit status, but not the output.
	gated := err != nil && slices.Contains([]int{statusGateFailed, statusGateOpen}, cmd.ProcessState.ExitCode())
	if err != nil && !gated {
		t.Fatalf("knotmeter %q: %v\n%s", args, err, errs.Bytes())
	}
	return text
}

// TestSchemasHaveTheFieldsOfTheTypes checks that every field of a Go type is in its schema, and every field of a schema
// in its Go type.
func TestSchemasHaveTheFieldsOfTheTypes(t *testing.T) {
	w := &walk{t: t, documents: readSchemas(t)}
	for name, kind := range schemaNames() {
		w.compare(name, kind, location{name, w.documents[name]})
	}
	if w.fields < 150 {
		t.Errorf("only %d fields were compared", w.fields)
	}
}

type walk struct {
	t         *testing.T
	documents map[string]object
	fields    int
}

// A location is a schema within a document, to which its references are relative.
type location struct {
	document string
	schema   object
}

// follow resolves a reference, if there is one.
func (w *walk) follow(at location) location {
	ref, ok := at.schema["$ref"].(string)
	if !ok {
		return at
	}
	document, path, _ := strings.Cut(ref, "#")
	if document == "" {
		document = at.document
	}
	schema := w.documents[document]
	for _, key := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		if key == "" {
			continue
		}
		next, ok := schema[key].(object)
		if !ok {
			w.t.Fatalf("%s: %s leads nowhere", at.document, ref)
		}
		schema = next
	}
	return location{document, schema}
}

// child returns the schema below another under a key.
func (w *walk) child(path string, at location, key string) location {
	schema, ok := at.schema[key].(object)
	if !ok {
		w.t.Errorf("%s has no %s", path, key)
		return location{at.document, object{}}
	}
	return location{at.document, schema}
}

func (w *walk) compare(path string, kind reflect.Type, at location) {
	at = w.follow(at)
	switch {
	case kind.Implements(reflect.TypeFor[json.Marshaler]()): // a number or null, an interval, a time
	case kind.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		w.scalar(path, reflect.TypeFor[string](), at)
	case kind.Kind() == reflect.Pointer:
		w.compare(path, kind.Elem(), at)
	case kind.Kind() == reflect.Array:
		w.array(path, kind, at)
	case kind.Kind() == reflect.Slice:
		w.compare(path+"[]", kind.Elem(), w.child(path, at, "items"))
	case kind.Kind() == reflect.Map:
		w.compare(path+"{}", kind.Elem(), w.child(path, at, "additionalProperties"))
	case kind.Kind() == reflect.Struct:
		w.structure(path, kind, at)
	default:
		w.scalar(path, kind, at)
	}
}

func (w *walk) array(path string, kind reflect.Type, at location) {
	items, _ := at.schema["prefixItems"].([]any)
	if len(items) != kind.Len() || at.schema["items"] != false {
		w.t.Errorf("%s: the schema has %d elements, %s has %d", path, len(items), kind, kind.Len())
	}
	for _, item := range items {
		w.compare(path+"[]", kind.Elem(), location{at.document, item.(object)})
	}
}

func (w *walk) structure(path string, kind reflect.Type, at location) {
	var want, required []string
	properties := w.child(path, at, "properties")
	for _, field := range reflect.VisibleFields(kind) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || name == "" || name == "-" || hidden(kind, field) {
			continue
		}
		want = append(want, name)
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			required = append(required, name)
		}
		if _, ok := properties.schema[name]; !ok {
			w.t.Errorf("%s: the field %s of %s is not in the schema", path, name, kind)
			continue
		}
		w.fields++
		w.compare(path+"."+name, field.Type, w.child(path, properties, name))
	}
	for name := range properties.schema {
		if !slices.Contains(want, name) {
			w.t.Errorf("%s: the schema has a field %s, %s has not", path, name, kind)
		}
	}
	var got []string
	list, _ := at.schema["required"].([]any)
	for _, name := range list {
		got = append(got, name.(string))
	}
	slices.Sort(got)
	slices.Sort(required)
	if !slices.Equal(got, required) {
		w.t.Errorf("%s: the schema requires %q, %s always writes %q", path, got, kind, required)
	}
}

// hidden reports whether a field of an embedded type is hidden by another of the same name.
func hidden(kind reflect.Type, field reflect.StructField) bool {
	shown, found := kind.FieldByName(field.Name)
	return found && !slices.Equal(shown.Index, field.Index)
}

// scalar compares the type of a field with a schema's.
func (w *walk) scalar(path string, kind reflect.Type, at location) {
	if at.schema["enum"] != nil || at.schema["const"] != nil {
		return // strings
	}
	want := "string"
	switch kind.Kind() {
	case reflect.Bool:
		want = "boolean"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		want = "integer"
	case reflect.Float64:
		want = "number"
	}
	if got := fmt.Sprint(at.schema["type"]); !strings.Contains(got, want) {
		w.t.Errorf("%s: the schema says %s, and it is written as %s", path, got, want)
	}
}

func TestEveryFieldOfASchemaIsDescribed(t *testing.T) {
	w := &walk{t: t, documents: readSchemas(t)}
	for name, document := range w.documents {
		w.described(name, location{name, document})
	}
}

// described checks that every named schema has a title and a description, and every number its unit.
func (w *walk) described(path string, at location) {
	for _, list := range []string{"properties", "$defs"} {
		children, _ := at.schema[list].(object)
		for name, child := range children {
			schema := child.(object)
			for _, key := range []string{"title", "description"} {
				if text, _ := schema[key].(string); text == "" {
					w.t.Errorf("%s.%s has no %s", path, name, key)
				}
			}
			if list == "properties" && w.numeric(location{at.document, schema}) &&
				!strings.Contains(schema["description"].(string), "Unit: ") {
				w.t.Errorf("%s.%s is a number, and its description has no unit", path, name)
			}
			w.described(path+"."+name, location{at.document, schema})
		}
	}
}

// numeric reports whether a field is a number or a list of numbers.
func (w *walk) numeric(at location) bool {
	at = w.follow(at)
	if items, ok := at.schema["items"].(object); ok {
		return w.numeric(location{at.document, items})
	}
	if items, ok := at.schema["prefixItems"].([]any); ok {
		return w.numeric(location{at.document, items[0].(object)})
	}
	kind := fmt.Sprint(at.schema["type"])
	return strings.Contains(kind, "number") || strings.Contains(kind, "integer")
}
