package workload

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/nearest"
)

// The kinds of workloads on applications. Their App says which.
const (
	HTTP  Kind = "http"  // requests that the user describes
	Vault Kind = "vault" // Vault's transit engine
)

// An App is what is asked of an application. Every value of it is comparable.
type App struct {
	Name string `json:"name,omitempty"` // of a description, or what is asked of Vault
	Text string `json:"text,omitempty"` // the description, as YAML
}

// VaultOperations are what can be asked of Vault's transit engine, in the order of the reports.
func VaultOperations() []string { return []string{"encrypt", "decrypt", "sign", "verify"} }

// VaultWork is what can be asked of Vault. mix is a quarter of each of the operations; published is the mix in the
// closed loop of the published measurements.
func VaultWork() []string { return append(VaultOperations(), "mix", "published") }

// ParseApp reads the workload of a case on an application, as String writes it: http/NAME,
// vault/encrypt:rate=500, vault/mix:knee=100ms; text is the description of http/NAME. Every error Is
// ErrInvalid.
func ParseApp(name, text string) (Spec, error) {
	head, opts, _ := strings.Cut(name, ":")
	kind, what, _ := strings.Cut(head, "/")
	s := Spec{Kind: Kind(kind), App: App{Name: what, Text: text}}
	if s.Kind != HTTP && s.Kind != Vault {
		return Spec{}, fmt.Errorf("%w: %q is neither http/NAME nor vault/%s", ErrInvalid, name, strings.Join(VaultWork(), ", vault/"))
	}
	if err := s.App.validate(s.Kind); err != nil {
		return Spec{}, err
	}
	if err := s.setAll(name, opts); err != nil {
		return Spec{}, err
	}
	return s.Resolved()
}

func (a App) validate(kind Kind) error {
	switch {
	case kind == Vault && !slices.Contains(VaultWork(), a.Name):
		return fmt.Errorf("%w: %q can't be asked of Vault; there are %s", ErrInvalid, a.Name, nearest.List(a.Name, VaultWork()))
	case kind == Vault:
		return nil
	case !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`).MatchString(a.Name):
		return fmt.Errorf("%w: a name is letters, digits, dots, dashes and underscores, not %q", ErrInvalid, a.Name)
	case a.Text == "":
		return fmt.Errorf("%w: nothing says what http/%s asks; its file is named by the suite, as in --suite app:FILE", ErrInvalid, a.Name)
	}
	return nil
}

// Web says whether the workload is requests over HTTP: open loop at Rate, closed loop with Flows
// clients, or a search for the highest rate at which the 99th percentile stays below Knee.
func (k Kind) Web() bool { return k == API || k == HTTP || k == Vault }

// publishedWorkers are those of the published Vault measurements, each with one request at a time.
const publishedWorkers = 1300

// DefaultWebRate is requests per second, where neither a rate, clients nor a knee is given.
const DefaultWebRate = 20

func (s *Spec) fillWeb() {
	s.Call.fill()
	if s.Kind == Vault && s.App.Name == "published" {
		s.Flows = or(s.Flows, publishedWorkers)
	}
	if s.Flows == 0 && s.Knee == 0 && s.Rate == 0 {
		s.Rate = DefaultWebRate
		if strings.HasPrefix(s.Call.Verb, "pod-") {
			s.Rate = 1 // SIG-scalability's pace: starting pods disturbs the start of others
		}
	}
}

func (s Spec) validateWeb() error {
	ways := 0
	for _, given := range []bool{s.Rate != 0, s.Flows != 0, s.Knee != 0} {
		if given {
			ways++
		}
	}
	pods := strings.HasPrefix(s.Call.Verb, "pod-")
	switch {
	case ways != 1:
		return fmt.Errorf("%w: %s has one of rate (open loop), clients (closed loop) and knee (a search for the rate)", ErrInvalid, s.Kind)
	case !(s.Rate >= 0 && s.Rate <= MaxWebRate):
		return fmt.Errorf("%w: rate=%g is not from 0 to %d per second", ErrInvalid, s.Rate, MaxWebRate)
	case s.Flows < 0 || s.Flows > MaxClients:
		return fmt.Errorf("%w: clients=%d is not from 1 to %d", ErrInvalid, s.Flows, MaxClients)
	case pods && (s.Rate == 0 || s.Rate > 20):
		return fmt.Errorf("%w: %s has a rate up to 20 per second, the churn that Kubernetes' own objectives are about", ErrInvalid, s.Call.Verb)
	case s.Kind == API:
		return s.Call.validate()
	}
	return s.App.validate(s.Kind)
}

// webName is the part of the name before the parameters.
func (s Spec) webName() string {
	if s.Kind == API {
		return s.Call.String()
	}
	return string(s.Kind) + "/" + s.App.Name
}
