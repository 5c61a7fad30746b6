package parameter

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/unit"
)

// A load is what the tests' parameters are of.
type load struct {
	Kind   string
	Flows  int
	Size   int
	Wait   time.Duration
	Share  float64
	Quick  bool
	Colour string
}

var loads = Schema[load]{
	New(Parameter[load]{Name: "flows", Default: "1", Help: "connections"},
		func(l *load) *int { return &l.Flows }, Int(1, 8)),
	New(Parameter[load]{
		Name: "size", Of: "`big`, `small`", Has: func(l load) bool { return l.Kind != "none" }, Default: "64KiB, 1 of small",
		DefaultOf: func(l load) string { return map[string]string{"big": "64KiB", "small": "1"}[l.Kind] },
	}, func(l *load) *int { return &l.Size }, Size(1, 1<<20, strconv.Itoa)),
	New(Parameter[load]{Name: "wait"}, func(l *load) *time.Duration { return &l.Wait },
		Duration(time.Millisecond, time.Minute)),
	New(Parameter[load]{Name: "share"}, func(l *load) *float64 { return &l.Share },
		Number(unit.Ratio, "a share up to 1", func(v float64) bool { return v > 0 && v <= 1 })),
	New(Parameter[load]{Name: "quick", Default: "no"}, func(l *load) *bool { return &l.Quick }, Switch("no", "yes")),
	New(Parameter[load]{Name: "colour"}, func(l *load) *string { return &l.Colour }, OneOf("red", "blue")),
}

func parse(text string) (load, error) {
	kind, _, _ := strings.Cut(text, ":")
	l := load{Kind: kind}
	err := loads.Parse(&l, text)
	loads.Fill(&l)
	return l, err
}

// TestText checks that defaults are filled in, and that the canonical text has all other parameters in order.
func TestText(t *testing.T) {
	for text, want := range map[string]load{
		"big":                  {Kind: "big", Flows: 1, Size: 64 << 10},
		"small:flows=2":        {Kind: "small", Flows: 2, Size: 1},
		"big:size=1":           {Kind: "big", Flows: 1, Size: 1},
		"none:wait=1.5s":       {Kind: "none", Flows: 1, Wait: 1500 * time.Millisecond},
		"none:quick=yes":       {Kind: "none", Flows: 1, Quick: true},
		"none:share=0.5":       {Kind: "none", Flows: 1, Share: 0.5},
		"small:size=2,wait=1s": {Kind: "small", Flows: 1, Size: 2, Wait: time.Second},
		"none:colour=blue":     {Kind: "none", Flows: 1, Colour: "blue"},
	} {
		got, err := parse(text)
		if err != nil || got != want || loads.Text(got.Kind, got) != text || loads.Check(got) != nil {
			t.Errorf("%s is %+v, %v, written %s", text, got, err, loads.Text(got.Kind, got))
		}
	}
	// Defaults are left out, whatever their form and order.
	if got, err := parse("big:quick=no,size=65536,flows=1"); err != nil || loads.Text("big", got) != "big" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"big:flows":           `"flows" in "big:flows" is not key=value`,
		"big:flows=1,flows=2": `flows is given twice in "big:flows=1,flows=2"`,
		"big:flows=0":         `flows=0 in "big:flows=0": it has to be 1 to 8`,
		"big:flows=x":         "it has to be 1 to 8",
		"big:size=2MiB":       "it has to be 1 to 1MiB",
		"big:wait=2m":         "it has to be 1ms to 1m",
		"big:share=nan":       "it has to be a share up to 1",
		"big:quick=maybe":     "it has to be no or yes",
		"big:colour=green":    "it has to be red or blue",
		"big:flow=1": `there is no such parameter; big has flows, size, wait, share, quick, colour; did you mean ` +
			`"flows"?`,
		"none:size=1": "it is a parameter of big, small; none has flows, wait",
	} {
		if got, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %+v, %v; want %s", text, got, err, want)
		}
	}
	if err := loads.Check(load{Flows: 9}); err == nil || err.Error() != "flows=9: it has to be 1 to 8" {
		t.Error(err)
	}
}

func ExampleSchema_Help() {
	for _, h := range loads.HelpOf(load{Kind: "none"})[:1] {
		fmt.Printf("%s: %s, %s (default %s)\n", h.Name, h.About, h.Values, h.Default)
	}
	// Output: flows: connections, 1 to 8 (default 1)
}
