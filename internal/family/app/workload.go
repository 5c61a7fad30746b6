// Package app is the family of requests to applications: Vault's transit engine, and requests that a user describes.
//
// What the cases measure, and what they do not:
//
//   - vault/encrypt, decrypt, sign and verify at a fixed rate measure how long a request takes from its planned time,
//     with Vault far from its limit. They do not measure Vault's capacity.
//   - vault/mix has a quarter of each; with knee= it measures the highest rate at which the 99th percentile stays below
//     that limit and nothing fails.
//   - vault/published is the mix as published measurements have it: 1300 clients, each of which waits for its response.
//     Vault is saturated all the time, so that the mean latency is 1300 divided by the rate, and measures throughput.
//   - http/NAME has the requests of its description.
//
// None measures the storage that a busy Vault needs, since transit writes nothing, nor what distant clients see.
package app

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/app/webapp"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/httpload"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/userfile"
	"github.com/knotmeter/knotmeter/internal/vault"
)

// Limits of the time outside of the windows.
const (
	deployTime = 4 * time.Minute // to deploy a Vault, and to remove it with its volumes
	mountTime  = time.Minute     // to read its state and to remove the run's mount; replicas without a leader delay both
)

// The usual times outside of the windows.
const (
	usualDeploy = 11 * time.Second       // to deploy and remove a Vault
	usualMount  = 300 * time.Millisecond // to create and remove a run's mount
)

// Path is the first part of the names of all cases.
const Path = "app"

// Family returns the family of requests to applications, measured by the tools.
func Family(tools ...family.Tool) family.Family {
	published := Workload{Application: Vault, Name: vault.Published}
	published.Pace = published.defaultPace()
	return family.Family{
		Name: "app", Paths: []string{Path}, Parse: parse, Parameters: family.ParametersOf(parameters), Suites: suites(),
		Tools: tools,
		File:  &family.SuiteFile{About: "each description of requests in a YAML file is a case", Read: fileSuite},
		Kinds: []family.Sample{{Name: "app", Workload: published}},
		Offers: []family.Sample{
			{Name: "applications", Workload: Workload{Application: HTTP}}, {Name: "Vault", Workload: published},
		},
	}
}

// Values of Workload.Of.
const (
	HTTP  = "http"     // requests that the user describes
	Vault = vault.Name // Vault's transit engine
)

// A Workload is a load of requests to an application. It is comparable with ==.
type Workload struct {
	Application string // HTTP or Vault
	Name        string // the name of a description, or one of vaultLoads
	Text        string // the description in YAML, for HTTP
	family.Pace
}

// publishedWorkers is the number of clients in published measurements, each with one request at a time.
const publishedWorkers = 1300

// vaultLoads lists the names of Vault's workloads.
var vaultLoads = append(slices.Clip(vault.Operations), vault.Mix, vault.Published)

var descriptionName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

var parameters = family.PaceParameters(func(w *Workload) *family.Pace { return &w.Pace }, Workload.defaultPace,
	"20; `vault/published` has 1300 clients")

func parse(_, name, definition string) (family.Workload, error) { return Parse(name, definition) }

// Parse reads a workload as Title writes it: http/NAME, vault/encrypt:rate=500, vault/mix:knee=100ms. text is the
// description of http/NAME.
func Parse(name, text string) (Workload, error) {
	head, _, _ := strings.Cut(name, ":")
	of, what, _ := strings.Cut(head, "/")
	w := Workload{Application: of, Name: what, Text: text}
	if err := w.validateName(name); err != nil {
		return Workload{}, err
	}
	if err := parameters.Parse(&w, name); err != nil {
		return Workload{}, err
	}
	return w.Resolved()
}

// Resolved returns the workload with its defaults, or an error that names the value that is out of range.
func (w Workload) Resolved() (Workload, error) {
	if w.Name == vault.Published && w.Application == Vault && w.Clients == 0 {
		w.Clients = publishedWorkers
	}
	parameters.Fill(&w)
	if err := w.Pace.Validate(w.Application); err != nil {
		return w, err
	}
	return w, w.validateName(w.Title())
}

func (w Workload) defaultPace() family.Pace {
	if w.Application == Vault && w.Name == vault.Published {
		return family.Pace{Clients: publishedWorkers}
	}
	return family.Pace{Rate: family.DefaultRate}
}

// validateName checks the parts of the name; given is the name that the user wrote, for errors.
func (w Workload) validateName(given string) error {
	switch {
	case w.Application != HTTP && w.Application != Vault:
		return fmt.Errorf("%q is neither http/NAME nor vault/%s", given, strings.Join(vaultLoads, ", vault/"))
	case w.Application == Vault && !slices.Contains(vaultLoads, w.Name):
		return fmt.Errorf("%q can't be asked of Vault; there are %s", w.Name, prose.Choices(w.Name, vaultLoads))
	case w.Application == Vault:
		return nil
	case !descriptionName.MatchString(w.Name):
		return fmt.Errorf("a name is letters, digits, dots, dashes and underscores, not %q", w.Name)
	case w.Text == "":
		return fmt.Errorf("nothing says what http/%s asks; its file is named by the suite, as in --suite app:FILE", w.Name)
	}
	return nil
}

// Title returns the workload's part of its case's name.
func (w Workload) Title() string {
	return parameters.Text(w.Application+"/"+w.Name, w)
}

// subject returns a description of the requests for readers: "Vault encrypt".
func (w Workload) subject() string {
	if w.Application == Vault {
		return "Vault " + w.Name
	}
	return "Requests " + w.Name
}

func (w Workload) String() string { return Path + "/" + w.Title() }

// Metric returns the metric that verdicts are about. For published measurements it is the mean, which at saturation is
// the number of clients divided by the rate.
func (w Workload) Metric() string {
	if w.Application == Vault && w.Name == vault.Published && w.MostClients == 0 {
		return metric.Mean
	}
	return w.Pace.Metric()
}

// Traits returns the traits of the workload.
func (w Workload) Traits() family.Traits {
	t := family.Traits{
		Path: Path, Kind: w.Title(), Metric: w.Metric(), Definition: w.Text,
		Words:  result.Words{Subject: w.subject(), Quantity: w.Pace.Quantity()},
		Limits: w.Pace.Limits(0), Alone: w.Pace.Alone(), Nominal: w.Pace.Nominal(0),
	}
	if w.Application == Vault {
		t.Needs.Application = vault.Name
		t.Limits.Open, t.Limits.Close, t.Limits.Run = deployTime, deployTime, t.Limits.Run+mountTime
		t.Nominal.Site, t.Nominal.Run = usualDeploy, usualMount
	}
	return t
}

// Disturbs returns the reason why the workload may disturb other users of the application, empty if there is none.
func (w Workload) Disturbs(family.Times) string { return w.Pace.Disturbs() }

// Sends returns the destination, requests, files and variables of a description. It returns zero for Vault, whose
// address the target knows.
func (w Workload) Sends() family.Sent {
	d, err := w.Description()
	if err != nil {
		return family.Sent{}
	}
	return family.Sent{To: d.Destination(), Requests: d.Lines(), Files: d.Files(), Variables: d.Variables()}
}

// Description returns the user's description; unknown fields are errors. Every error wraps webapp.ErrDescription.
func (w Workload) Description() (webapp.Description, error) {
	var d webapp.Description
	if err := userfile.Decode([]byte(w.Text), &d); err != nil {
		return d, fmt.Errorf("%w: %w", webapp.ErrDescription, err)
	}
	return d, d.Validate()
}

// At returns the workload at another rate or number of clients.
func (w Workload) At(rate float64, clients int) family.Workload {
	w.Pace = w.Pace.At(rate, clients)
	return w
}

// HTTPTraits returns the pace and the kinds of requests.
func (w Workload) HTTPTraits() family.HTTPTraits {
	a := family.HTTPTraits{Pace: w.Pace}
	if w.Application == Vault {
		if !slices.Contains(vault.Operations, w.Name) {
			a.Kinds = vault.Operations
		}
		return a
	}
	if d, err := w.Description(); err == nil && len(d.Requests) > 1 {
		for _, r := range d.Requests {
			a.Kinds = append(a.Kinds, r.Name)
		}
	}
	return a
}

// AgentRequest returns the verb and body of the request to an agent, with the files and secrets that a description
// names. The seed is derived from the workload's name, so that every target gets the same requests.
func (w Workload) AgentRequest(
	e host.Endpoint, t family.Times, from family.Environment,
) (verb string, body any, err error) {
	sum := sha256.Sum256([]byte(w.Title()))
	seed := binary.LittleEndian.Uint64(sum[:])
	load := httpload.Load{Rate: w.Rate, Clients: w.Clients, MostClients: w.MostClients, Knee: w.Knee, Seed: t.Seed,
		Warmup: t.Warmup, Window: t.Window}
	if w.Application == Vault {
		if e.URL == "" {
			return "", nil, result.NotSupported("the target knows of no Vault")
		}
		limit := w.Pace.Limits(0).Bound(t, vault.Spare)
		return vault.Verb, vault.Config{Endpoint: e, Ask: w.Name, Seed: seed, Load: load, Limit: limit}, nil
	}
	c := webapp.Config{Seed: seed, Load: load}
	if err := w.addDescription(&c, from); err != nil {
		return "", nil, fmt.Errorf("%s: %w", w, err)
	}
	return webapp.Verb, c, nil
}

// addDescription adds the description, with its CA certificate and secrets from the user's environment.
func (w Workload) addDescription(c *webapp.Config, from family.Environment) (err error) {
	if c.Description, err = w.Description(); err != nil {
		return err
	}
	if ca := c.Description.CA; ca != "" {
		if c.CA, err = from.ReadFile(ca); err != nil {
			return fmt.Errorf("%w: ca: %w", webapp.ErrDescription, err)
		}
	}
	c.Secrets, err = c.Description.ReadSecrets(from)
	return err
}
