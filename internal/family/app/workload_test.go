package app

import (
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/vault"
)

func TestParse(t *testing.T) {
	const text = "url: http://127.0.0.1/"
	for name, want := range map[string]Workload{
		"http/shop":              {Application: HTTP, Name: "shop", Text: text, Pace: family.Pace{Rate: family.DefaultRate}},
		"http/shop:clients=10":   {Application: HTTP, Name: "shop", Text: text, Pace: family.Pace{Clients: 10}},
		"vault/encrypt:rate=500": {Application: Vault, Name: "encrypt", Pace: family.Pace{Rate: 500}},
		"vault/mix:knee=100ms":   {Application: Vault, Name: "mix", Pace: family.Pace{Knee: 100 * time.Millisecond}},
		"vault/published":        {Application: Vault, Name: "published", Pace: family.Pace{Clients: 1300}},
		"vault/mix:clients=1-64": {Application: Vault, Name: "mix", Pace: family.Pace{Clients: 1, MostClients: 64}},
		"vault/published:clients=1300-2600": {Application: Vault, Name: "published",
			Pace: family.Pace{Clients: 1300, MostClients: 2600}},
	} {
		definition := ""
		if want.Application == HTTP {
			definition = text
		}
		got, err := Parse(name, definition)
		if err != nil || got != want || got.Title() != name {
			t.Errorf("%s is %+v, written %s, %v", name, got, got, err)
		}
	}
	for name, want := range map[string]string{
		"":                             "neither http",
		"grpc/x":                       "neither http",
		"http/":                        "a name is",
		"http/a b":                     "a name is",
		"http/shop":                    "nothing says",
		"vault/rewrap":                 "can't be asked",
		"vault/published:rate=5":       "one of rate",
		"vault/mix:clients=64-1":       "such as 1-64",
		"vault/mix:clients=1-1":        "such as 1-64",
		"vault/mix:clients=1-10001":    "1 to 10000",
		"vault/mix:clients=1-0":        "such as 1-64",
		"vault/mix:clients=0-5":        "such as 1-64",
		"vault/mix:clients=1-2-3":      "such as 1-64",
		"vault/mix:clients=1-9,rate=5": "one of rate",
	} {
		if got, err := Parse(name, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %+v, %v; wanted %q", name, got, err, want)
		}
	}
}

func TestMetric(t *testing.T) {
	for name, want := range map[string]string{"vault/mix": "p50",
		"vault/mix:knee=1s": "rate", "vault/published": "mean", "vault/mix:clients=3": "p50",
		"vault/mix:clients=1-3": "rate", "vault/published:clients=1-1300": "rate"} {
		if s, err := Parse(name, ""); err != nil || s.Metric() != want || (s.Rate > 0) != (name == "vault/mix") {
			t.Errorf("%s: %s, %v", name, s.Metric(), err)
		}
	}
}

// TestSearchOfClients checks that a search for the number of clients keeps its own pace, has sites of its own, allows
// time for its trials, and always needs consent.
func TestSearchOfClients(t *testing.T) {
	w, err := Parse("vault/mix:clients=1-4", "")
	if err != nil {
		t.Fatal(err)
	}
	const why = "it looks for the number of clients that saturates the server, up to 4"
	if got := w.Disturbs(family.Times{}); got != why {
		t.Errorf("disturbs: %q", got)
	}
	knee, err := Parse("vault/mix:knee=1s", "")
	if err != nil {
		t.Fatal(err)
	}
	got, want := w.Traits(), knee.Traits()
	if !got.Alone || got.Limits != want.Limits || got.Nominal != want.Nominal ||
		got.Words.Quantity != "rate at saturation" {
		t.Errorf("%+v, and of a knee %+v", got, want)
	}
	if w.At(500, 0) != w || w.At(0, 7) != w {
		t.Errorf("another pace: %+v", w.At(0, 7))
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"vault/mix:knee=100ms", "vault/mix:clients=1-64", "http/x:clients=5",
		"vault/published"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w, err := Parse(text, "x")
		if err != nil {
			return
		}
		if again, err := Parse(w.Title(), "x"); err != nil || again != w {
			t.Errorf("%q is %+v, written %q, read as %+v, %v", text, w, w.Title(), again, err)
		}
	})
}

// TestVaultLimit checks that a search in a Vault has time for several windows, and that mounts are kept as long.
func TestVaultLimit(t *testing.T) {
	w := Workload{Application: Vault, Name: "mix", Pace: family.Pace{Knee: 50 * time.Millisecond}}
	times := family.Times{Warmup: time.Minute, Window: 9 * time.Minute}
	_, body, err := w.AgentRequest(host.Endpoint{URL: "https://vault:8200"}, times, family.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	windows, c := w.Limits(0).Windows, body.(vault.Config)
	if windows < 2 || c.Limit < time.Duration(windows)*times.Total()+vault.Spare || c.Load.Knee != w.Knee {
		t.Errorf("%d windows of 10 min: %+v", windows, c)
	}
}
