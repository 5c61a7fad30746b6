package targets

import (
	"errors"
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

func FuzzList(f *testing.F) {
	f.Add("a", "b,c", `\`)
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if list := []string{a, b, c}; !slices.Equal(SplitList(JoinList(list)), list) {
			t.Errorf("%q becomes %q", list, SplitList(JoinList(list)))
		}
	})
}

type engine struct {
	MTU    string
	Secure bool
	Part   part
}

type part struct{ Name string }

var engineSettings = append([]Setting[engine]{
	{Option{Name: "rate", Example: "1G"}, func(*engine, string) error { return errors.New("it is a rate") }},
	NewSetting(Option{Name: "mtu", Example: "1500"}, func(e *engine) *string { return &e.MTU }, CheckedText(notEmpty)),
	NewSetting(Option{Name: "secure", Example: "yes", Value: Switch, Needs: "mtu=9000"},
		func(e *engine) *bool { return &e.Secure }, YesOrNo),
	{Option: Option{Name: "token", Refused: errors.New("histories keep it")}},
}, Within(func(e *engine) *part { return &e.Part }, []Setting[part]{
	NewSetting(Option{Name: "part", Example: "NAME"}, func(p *part) *string { return &p.Name }, AnyText),
})...)

func notEmpty(value string) error {
	if value == "" {
		return errors.New("it is not empty")
	}
	return nil
}

func TestRead(t *testing.T) {
	s, err := result.ParseSpec("lab:vxlan?mtu=9000&label=x&secure=yes&part=p")
	var e engine
	err = errors.Join(err, Read(s, engineSettings, &e))
	if want := (engine{MTU: "9000", Secure: true, Part: part{"p"}}); err != nil || e != want {
		t.Errorf("%+v, %v", e, err)
	}
	for text, want := range map[string]string{
		// Of two unknown options, the error names the first by name.
		"lab:vxlan?mtu=1&label=x&zoo=3&ant=2": `invalid target: "lab:vxlan?mtu=1&label=x&zoo=3&ant=2": ` +
			`lab targets have no option "ant"; there are label, mtu, part, rate, secure`,
		"lab:vxlan?mtu=&label=x":          "invalid target: x: option mtu=: it is not empty",
		"lab:?mtu=9000&secure=true":       "invalid target: lab:?mtu=9000&secure=true: option secure=true: it is no or yes",
		"lab:vxlan?mtu=1&secure=no":       "invalid target: lab:vxlan?mtu=1&secure=no: option secure needs mtu=9000 too",
		"lab:vxlan?secure=no":             "invalid target: lab:vxlan?secure=no: option secure needs mtu=9000 too",
		"lab:vxlan?rate=fast":             "invalid target: lab:vxlan?rate=fast: option rate=fast: it is a rate",
		"lab:vxlan?token=s3cret&colour=1": "invalid target: lab:vxlan: option token: histories keep it",
	} {
		s, err := result.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := Read(s, engineSettings, &engine{}); !errors.Is(err, result.ErrSpec) || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestOptions(t *testing.T) {
	var list []string
	for _, o := range Options(engineSettings) {
		list = append(list, o.String())
		if err := o.Check; o.Name == "secure" && (err("yes") != nil || err("1") == nil) {
			t.Errorf("%s is not checked", o)
		}
	}
	want := []string{"rate=1G", "mtu=1500", "secure=yes", "token=", "part=NAME", "label=NAME"}
	if !slices.Equal(list, want) {
		t.Errorf("%q, want %q", list, want)
	}
}

func TestFile(t *testing.T) {
	for _, c := range []struct {
		value      Value
		text, want string
	}{
		{Text, "a", ""}, {File, "a", "a"}, {File, "{a", "{a"}, {File, "", ""},
		{Document, "a.yaml", "a.yaml"}, {Document, "{a: b}", ""},
	} {
		if got := (Option{Value: c.value}).File(c.text); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
