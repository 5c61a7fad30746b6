package family_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

const (
	tcpRR kind = "tcp-rr"
	udpRR kind = "udp-rr"
	fio   kind = "fio"
)

// A kind is a workload with that name.
type kind string

func (k kind) String() string { return "test/" + string(k) }

func (k kind) Traits() family.Traits { return family.Traits{Path: "test", Kind: string(k)} }

// oneTool is a tool that supports one kind of workload.
type oneTool struct {
	name string
	kind kind
}

func (t *oneTool) Name() string { return t.name }

func (t *oneTool) Supports(w family.Workload) error {
	if w != t.kind {
		return result.NotSupported("it knows nothing but " + string(t.kind))
	}
	return nil
}

func (t *oneTool) Metrics(family.Workload) []metric.Metric {
	return []metric.Metric{{Name: "of-" + t.name}}
}

func (t *oneTool) Program(family.Workload) string { return "/bin/" + t.name }

func (t *oneTool) Run(_ context.Context, _ host.Pair, w family.Workload, _ family.Times) (result.Measurement, error) {
	return result.Measurement{Facts: []result.Fact{{Name: "by", Value: t.name}}}, t.Supports(w)
}

func TestSet(t *testing.T) {
	set := family.Set{&oneTool{"a", tcpRR}, &oneTool{"b", fio}, &oneTool{"c", fio}}
	if set.Name() != "a,b,c" {
		t.Error(set.Name())
	}
	if m := set.Metrics(fio); len(m) != 1 || m[0].Name != "of-b" {
		t.Errorf("the metrics of fio's jobs are %v", m)
	}
	if m := set.Metrics(udpRR); len(m) != 0 {
		t.Errorf("the metrics of what no tool does are %v", m)
	}
	for w, want := range map[kind]string{tcpRR: "a", fio: "b"} {
		m, err := set.Run(t.Context(), host.Pair{}, w, family.Times{})
		if err != nil || result.FactOf(m.Facts, "by") != want || family.ToolFor(set, w).Name() != want ||
			set.Program(w) != "/bin/"+want || set.Supports(w) != nil {
			t.Errorf("%s is carried out by %+v, %v", w, m, err)
		}
	}
	var none family.Workload = udpRR
	_, err := set.Run(t.Context(), host.Pair{}, none, family.Times{})
	if !errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(), "a: it knows nothing but tcp-rr; b: ") ||
		family.ToolFor(set, none) != nil || set.Program(none) != "" {
		t.Errorf("%v", err)
	}
	if single := set[0]; family.ToolFor(single, none) != single {
		t.Error("a single tool is its own choice")
	}
}

func TestOnly(t *testing.T) {
	set := family.Set{&oneTool{"a", tcpRR}, &oneTool{"b", fio}, &oneTool{"c", fio}}
	for names, want := range map[string]string{"a,b,c": "", "c": "", "c,a": "", "a,x": `no "x"; there are a, b, c`,
		"": `no ""`} {
		part, err := family.Only(set, names)
		switch {
		case want == "" && (err != nil || part.Name() != names):
			t.Errorf("%q is %v, %v", names, part, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v", names, err)
		}
	}
	if _, err := family.Only(set[0], "b"); err == nil || !strings.Contains(err.Error(), "the tool is a, not b") {
		t.Error(err)
	}
}
