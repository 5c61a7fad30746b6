package api

import (
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Workload{
		"configmap/create": {Pace: family.Pace{Rate: family.DefaultRate},
			Call: Call{Resource: "configmap", Verb: "create"}},
		"configmap/get:rate=100":  {Pace: family.Pace{Rate: 100}, Call: Call{Resource: "configmap", Verb: "get"}},
		"service/patch:clients=4": {Pace: family.Pace{Clients: 4}, Call: Call{Resource: "service", Verb: "patch"}},
		"configmap/get:clients=1-8": {Pace: family.Pace{Clients: 1, MostClients: 8},
			Call: Call{Resource: "configmap", Verb: "get"}},
		"deployment/scale:knee=1s": {Pace: family.Pace{Knee: time.Second},
			Call: Call{Resource: "deployment", Verb: "scale"}},
		"pod/list": {Pace: family.Pace{Rate: family.DefaultRate},
			Call: Call{Resource: "pod", Verb: "list", Objects: 1}},
		"pod/list:objects=100,consistent=true": {Pace: family.Pace{Rate: family.DefaultRate},
			Call: Call{Resource: "pod", Verb: "list", Objects: 100, Consistent: true}},
		"floor":       {Pace: family.Pace{Rate: family.DefaultRate}, Call: Call{Verb: "floor"}},
		"pod-startup": {Pace: family.Pace{Rate: 1}, Call: Call{Verb: "pod-startup"}},
		"deployment/scale:replicas=3": {Pace: family.Pace{Rate: 1},
			Call: Call{Resource: "deployment", Verb: "scale", Replicas: 3}},
		"deployment/get:replicas=1": {Pace: family.Pace{Rate: family.DefaultRate},
			Call: Call{Resource: "deployment", Verb: "get", Replicas: 1}},
		"pod/create:start=true,rate=2": {Pace: family.Pace{Rate: 2},
			Call: Call{Resource: "pod", Verb: "create", Start: true}},
		"pod-deletion:rate=0.5": {Pace: family.Pace{Rate: 0.5}, Call: Call{Verb: "pod-deletion"}},
	} {
		got, err := Parse(text)
		if err != nil || got != want || got.Title() != text {
			t.Errorf("%s is %+v, written %s, %v", text, got, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                                    "no call",
		"create":                              "there are RESOURCE/VERB",
		"/create":                             "names no resource",
		"secret/create":                       "no resource",
		"configmap/scale":                     "no verb",
		"configmap/get:objects=5":             "a parameter of list; configmap/get has rate, clients, knee",
		"configmap/list:objects=5001":         "it has to be 1 to 5000",
		"configmap/get:rate=5,clients=2":      "one of rate",
		"configmap/get:rate=0":                "above 0",
		"configmap/get:rate=1e9":              "above 0, up to 100000",
		"configmap/get:knee=2m":               "1µs to 1m",
		"configmap/get:flows=2":               "there is no such parameter; configmap/get has",
		"pod-startup:clients=3":               "has a rate up to 20",
		"pod/create:start=true,clients=1":     "has a rate up to 20",
		"deployment/scale:replicas=1,rate=21": "has a rate up to 20",
		"deployment/create:replicas=11":       "it has to be 1 to 10",
		"deployment/create:replicas=0":        "it has to be 1 to 10",
		"pod/create:replicas=1":               "a parameter of deployment",
		"deployment/create:start=true":        "a parameter of pod",
		"pod-startup:rate=21":                 "has a rate up to 20",
	} {
		if got, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %+v, %v; wanted %q", text, got, err, want)
		}
	}
}

// TestPods checks that consent depends on all pods, whatever they belong to, including those created before the first
// call.
func TestPods(t *testing.T) {
	for text, want := range map[string]float64{
		"pod-startup": 12, "pod/create": 0, "pod/create:start=true": 12, "pod/get:start=true": 4,
		"pod/list:objects=9,start=true": 9, "deployment/create": 0, "deployment/create:replicas=3": 36,
		"deployment/scale:replicas=2": 14, "deployment/list:objects=2,replicas=3": 6, "deployment/patch:replicas=3": 12,
	} {
		w, err := Parse(text)
		if got := w.Pods(12); err != nil || got != want {
			t.Errorf("%s: %g pods and not %g, %v", text, got, want, err)
		}
	}
	w, err := Parse("deployment/create:replicas=3")
	why := w.Disturbs(family.Times{Window: 12 * time.Second})
	if err != nil || why != "36 pods in a run are more than 30" {
		t.Errorf("%q, %v", why, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"configmap/create",
		"pod/list:objects=100,consistent=true,start=true", "floor:rate=0.1", "pod-startup", "deployment/scale:replicas=2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(w.Title()); err != nil || again != w {
			t.Errorf("%q is %+v, written %q, read as %+v, %v", text, w, w.Title(), again, err)
		}
	})
}
