package tool_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/tool"
	"github.com/knotmeter/knotmeter/internal/workload"
)

// one carries out one kind of workload.
type one struct {
	name string
	kind workload.Kind
}

func (o *one) Name() string { return o.name }

func (o *one) Supports(w workload.Spec) error {
	if w.Kind != o.kind {
		return result.NotSupported("it knows nothing but " + string(o.kind))
	}
	return nil
}

func (o *one) Metrics(workload.Spec) []metric.Metric { return []metric.Metric{{Name: "of-" + o.name}} }

func (o *one) Program(workload.Spec) string { return "/bin/" + o.name }

func (o *one) Run(_ context.Context, _ host.Pair, w workload.Spec) (result.Measurement, error) {
	return result.Measurement{Facts: []result.Fact{{Name: "by", Value: o.name}}}, o.Supports(w)
}

func TestSet(t *testing.T) {
	set := tool.Set{&one{"a", workload.TCPRR}, &one{"b", workload.FIO}, &one{"c", workload.FIO}}
	if set.Name() != "a,b,c" {
		t.Error(set.Name())
	}
	if m := set.Metrics(workload.Spec{Kind: workload.FIO}); len(m) != 1 || m[0].Name != "of-b" {
		t.Errorf("the metrics of fio's jobs are %v", m)
	}
	if m := set.Metrics(workload.Spec{Kind: workload.UDPRR}); len(m) != 0 {
		t.Errorf("the metrics of what no tool does are %v", m)
	}
	for kind, want := range map[workload.Kind]string{workload.TCPRR: "a", workload.FIO: "b"} {
		w := workload.Spec{Kind: kind}
		m, err := set.Run(t.Context(), host.Pair{}, w)
		if err != nil || result.FactOf(m.Facts, "by") != want || tool.For(set, w).Name() != want || set.Program(w) != "/bin/"+want || set.Supports(w) != nil {
			t.Errorf("%s is carried out by %+v, %v", kind, m, err)
		}
	}
	none := workload.Spec{Kind: workload.UDPRR}
	_, err := set.Run(t.Context(), host.Pair{}, none)
	if !errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(), "a: it knows nothing but tcp-rr; b: ") || tool.For(set, none) != nil || set.Program(none) != "" {
		t.Errorf("%v", err)
	}
	if single := set[0]; tool.For(single, none) != single {
		t.Error("a single tool is its own choice")
	}
}

func TestOnly(t *testing.T) {
	set := tool.Set{&one{"a", workload.TCPRR}, &one{"b", workload.FIO}, &one{"c", workload.FIO}}
	for names, want := range map[string]string{"a,b,c": "", "c": "", "c,a": "", "a,x": `no "x"; there are a, b, c`, "": `no ""`} {
		part, err := tool.Only(set, names)
		switch {
		case want == "" && (err != nil || part.Name() != names):
			t.Errorf("%q is %v, %v", names, part, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v", names, err)
		}
	}
	if _, err := tool.Only(set[0], "b"); err == nil || !strings.Contains(err.Error(), "the tool is a, not b") {
		t.Error(err)
	}
}
