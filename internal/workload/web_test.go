package workload

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParseCall(t *testing.T) {
	for text, want := range map[string]Spec{
		"configmap/create":                     {Rate: DefaultWebRate, Call: Call{Resource: "configmap", Verb: "create"}},
		"configmap/get:rate=100":               {Rate: 100, Call: Call{Resource: "configmap", Verb: "get"}},
		"service/patch:clients=4":              {Flows: 4, Call: Call{Resource: "service", Verb: "patch"}},
		"deployment/scale:knee=1s":             {Knee: time.Second, Call: Call{Resource: "deployment", Verb: "scale"}},
		"pod/list":                             {Rate: DefaultWebRate, Call: Call{Resource: "pod", Verb: "list", Objects: 1}},
		"pod/list:objects=100,consistent=true": {Rate: DefaultWebRate, Call: Call{Resource: "pod", Verb: "list", Objects: 100, Consistent: true}},
		"floor":                                {Rate: DefaultWebRate, Call: Call{Verb: "floor"}},
		"pod-startup":                          {Rate: 1, Call: Call{Verb: "pod-startup"}},
		"pod-deletion:rate=0.5":                {Rate: 0.5, Call: Call{Verb: "pod-deletion"}},
	} {
		want.Kind = API
		got, err := ParseCall(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s is %+v, written %s, %v", text, got, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                               "no call",
		"create":                         "there are RESOURCE/VERB",
		"/create":                        "names no resource",
		"secret/create":                  "no resource",
		"configmap/scale":                "no verb",
		"configmap/get:objects=5":        "only lists",
		"configmap/list:objects=5001":    "not from 1 to 5000",
		"configmap/get:rate=5,clients=2": "one of rate",
		"configmap/get:rate=0":           "above 0",
		"configmap/get:rate=1e9":         "not from 0 to",
		"configmap/get:knee=2m":          "out of range",
		"configmap/get:flows=2":          "no such parameter",
		"pod-startup:clients=3":          "has a rate up to 20",
		"pod-startup:rate=21":            "has a rate up to 20",
	} {
		if got, err := ParseCall(text); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %+v, %v; wanted %q", text, got, err, want)
		}
	}
}

func TestParseApp(t *testing.T) {
	const text = "url: http://127.0.0.1/"
	for name, want := range map[string]Spec{
		"http/shop":              {Kind: HTTP, Rate: DefaultWebRate, App: App{Name: "shop", Text: text}},
		"http/shop:clients=10":   {Kind: HTTP, Flows: 10, App: App{Name: "shop", Text: text}},
		"vault/encrypt:rate=500": {Kind: Vault, Rate: 500, App: App{Name: "encrypt"}},
		"vault/mix:knee=100ms":   {Kind: Vault, Knee: 100 * time.Millisecond, App: App{Name: "mix"}},
		"vault/published":        {Kind: Vault, Flows: 1300, App: App{Name: "published"}},
	} {
		definition := ""
		if want.Kind == HTTP {
			definition = text
		}
		got, err := ParseApp(name, definition)
		if err != nil || got != want || got.String() != name {
			t.Errorf("%s is %+v, written %s, %v", name, got, got, err)
		}
	}
	for name, want := range map[string]string{
		"":                       "neither http",
		"grpc/x":                 "neither http",
		"http/":                  "a name is",
		"http/a b":               "a name is",
		"http/shop":              "nothing says",
		"vault/rewrap":           "can't be asked",
		"vault/published:rate=5": "one of rate",
	} {
		if got, err := ParseApp(name, ""); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %+v, %v; wanted %q", name, got, err, want)
		}
	}
}

func TestWebMetric(t *testing.T) {
	for name, want := range map[string]string{"vault/mix": "p50", "vault/mix:knee=1s": "rate", "vault/published": "mean", "vault/mix:clients=3": "p50"} {
		if s, err := ParseApp(name, ""); err != nil || s.Metric() != want || s.OpenLoop() != (name == "vault/mix") {
			t.Errorf("%s: %s, %v", name, s.Metric(), err)
		}
	}
}

func FuzzParseWeb(f *testing.F) {
	for _, text := range []string{"configmap/create", "pod/list:objects=100,consistent=true", "floor:rate=0.1", "pod-startup", "vault/mix:knee=100ms", "http/x:clients=5", "vault/published"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string) (Spec, error){ParseCall, func(s string) (Spec, error) { return ParseApp(s, "x") }} {
			s, err := parse(text)
			if err != nil {
				if !errors.Is(err, ErrInvalid) {
					t.Errorf("%q: %v is not ErrInvalid", text, err)
				}
				continue
			}
			if again, err := parse(s.String()); err != nil || again.String() != s.String() || again.Rate != s.Rate || again.Knee != s.Knee || again.Flows != s.Flows {
				t.Errorf("%q is %+v, written %q, read as %+v, %v", text, s, s, again, err)
			}
		}
	})
}
