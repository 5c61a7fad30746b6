// Package app is the family of what is asked of applications: Vault's transit engine, and whatever a user describes.
//
// What the cases tell, and what they do not:
//
//   - vault/encrypt, decrypt, sign and verify at a fixed rate tell how long a request takes from the time it was
//     planned for, with Vault far from its limit. They tell nothing of what Vault can carry.
//   - vault/mix is a quarter of each; with a knee it tells the highest rate at which the 99th percentile stays below
//     that limit and nothing fails.
//   - vault/published is the mix as it was measured for publications: 1300 clients, each of which waits for its
//     answer. Vault is saturated all the while, so that the mean latency is 1300 over the rate: a throughput by
//     another name.
//   - http/NAME is what its description says.
//
// None tells what storage a busy Vault needs, since transit writes nothing, nor what clients far away see.
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
	"github.com/knotmeter/knotmeter/internal/family/app/vault"
	"github.com/knotmeter/knotmeter/internal/family/app/webapp"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/userfile"
)

// What runs need time for besides. A Vault may be deployed for a run, and removed with its volumes; and it may take its
// time to say how it is and to remove what a run had there: without a leader its replicas keep such requests waiting.
const (
	deployTime = 4 * time.Minute
	mountTime  = time.Minute
)

// What a Vault usually takes: a cluster of it is begun and removed, and a run has an engine of its own there.
const (
	usualDeploy = 11 * time.Second
	usualMount  = 300 * time.Millisecond
)

// Path is what the names of cases begin with.
const Path = "app"

// Family is the family of requests to applications, as the tools measure them.
func Family(tools ...family.Tool) family.Family {
	published := Workload{Of: Vault, Name: vault.Published}
	published.Pace = published.defaultPace()
	return family.Family{
		Name: "app", Paths: []string{Path}, Parse: parse, Suites: suites(), Tools: tools,
		File:  &family.SuiteFile{About: "each description of requests in a YAML file is a case", Read: file},
		Kinds: []family.Sample{{Name: "app", Workload: published}},
		Offers: []family.Sample{
			{Name: "applications", Workload: Workload{Of: HTTP}}, {Name: "Vault", Workload: published},
		},
	}
}

// What is asked.
const (
	HTTP  = "http"     // requests that the user describes
	Vault = vault.Name // Vault's transit engine
)

// A Workload is what is asked of an application. Every value of it is comparable.
type Workload struct {
	Of   string // HTTP or Vault
	Name string // of a description, or what is asked of Vault
	Text string // the description, as YAML
	family.Pace
}

// publishedWorkers are those of the published measurements, each with one request at a time.
const publishedWorkers = 1300

// work is what can be asked of Vault.
var work = append(slices.Clip(vault.Operations), vault.Mix, vault.Published)

var descriptionName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func parse(_, name, definition string) (family.Workload, error) { return Parse(name, definition) }

// Parse reads what is asked of an application, as Title writes it: http/NAME, vault/encrypt:rate=500,
// vault/mix:knee=100ms; text is the description of http/NAME. Every error Is family.ErrInvalid.
func Parse(name, text string) (Workload, error) {
	head, options, _ := strings.Cut(name, ":")
	of, what, _ := strings.Cut(head, "/")
	w := Workload{Of: of, Name: what, Text: text}
	if err := w.validateName(name); err != nil {
		return Workload{}, err
	}
	set := func(key, value string) error {
		if err := family.Known(of, key, family.PaceParameters); err != nil {
			return err
		}
		return w.Pace.Set(key, value)
	}
	if err := family.Parameters(name, options, set); err != nil {
		return Workload{}, err
	}
	return w.Resolved()
}

// Resolved is the workload with its defaults, or an error that Is family.ErrInvalid and names what is out of range.
func (w Workload) Resolved() (Workload, error) {
	if w.Name == vault.Published && w.Of == Vault && w.Clients == 0 {
		w.Clients = publishedWorkers
	}
	w.Pace = w.Pace.Or(w.defaultPace())
	if err := w.Pace.Validate(w.Of); err != nil {
		return w, err
	}
	return w, w.validateName(w.Title())
}

func (w Workload) defaultPace() family.Pace {
	if w.Of == Vault && w.Name == vault.Published {
		return family.Pace{Clients: publishedWorkers}
	}
	return family.Pace{Rate: family.DefaultRate}
}

// validateName checks what is asked, under the name that the user gave.
func (w Workload) validateName(given string) error {
	switch {
	case w.Of != HTTP && w.Of != Vault:
		return fmt.Errorf("%w: %q is neither http/NAME nor vault/%s",
			family.ErrInvalid, given, strings.Join(work, ", vault/"))
	case w.Of == Vault && !slices.Contains(work, w.Name):
		return fmt.Errorf("%w: %q can't be asked of Vault; there are %s",
			family.ErrInvalid, w.Name, prose.Choices(w.Name, work))
	case w.Of == Vault:
		return nil
	case !descriptionName.MatchString(w.Name):
		return fmt.Errorf("%w: a name is letters, digits, dots, dashes and underscores, not %q", family.ErrInvalid, w.Name)
	case w.Text == "":
		return fmt.Errorf("%w: nothing says what http/%s asks; its file is named by the suite, as in --suite app:FILE",
			family.ErrInvalid, w.Name)
	}
	return nil
}

// Title is the workload's part of its case's name.
func (w Workload) Title() string {
	return family.Title(w.Of+"/"+w.Name, w.Pace.Options(w.defaultPace()))
}

// subject is what is asked in plain words: "Vault encrypt".
func (w Workload) subject() string {
	if w.Of == Vault {
		return "Vault " + w.Name
	}
	return "Requests " + w.Name
}

func (w Workload) String() string { return Path + "/" + w.Title() }

// Metric is what a verdict is about. That of the published measurements is the mean, which at saturation is workers /
// rate.
func (w Workload) Metric() string {
	if w.Of == Vault && w.Name == vault.Published && w.MostClients == 0 {
		return metric.Mean
	}
	return w.Pace.Metric()
}

// Traits are those of a case.
func (w Workload) Traits() family.Traits {
	t := family.Traits{
		Path: Path, Kind: w.Title(), Metric: w.Metric(), Definition: w.Text,
		Words:  result.Words{Subject: w.subject(), Quantity: w.Pace.Quantity()},
		Limits: w.Pace.Limits(0), Alone: w.Pace.Alone(), Nominal: w.Pace.Nominal(0),
	}
	if w.Of == Vault {
		t.Needs.Application = vault.Name
		t.Limits.Open, t.Limits.Close, t.Limits.Run = deployTime, deployTime, t.Limits.Run+mountTime
		t.Nominal.Site, t.Nominal.Run = usualDeploy, usualMount
	}
	return t
}

// Disturbs says what of the workload other users of the application may feel.
func (w Workload) Disturbs(family.Times) string { return w.Pace.Disturbs() }

// Sends is what a description names; a target knows its Vault.
func (w Workload) Sends() family.Sent {
	d, err := w.Description()
	if err != nil {
		return family.Sent{}
	}
	return family.Sent{To: d.Destination(), Files: d.Files(), Variables: d.Variables()}
}

// Description is what a user describes, read strictly. Every error Is webapp.ErrDescription.
func (w Workload) Description() (webapp.Description, error) {
	var d webapp.Description
	if err := userfile.Decode([]byte(w.Text), &d); err != nil {
		return d, fmt.Errorf("%w: %w", webapp.ErrDescription, err)
	}
	return d, d.Validate()
}

// At is another pace.
func (w Workload) At(rate float64, clients int) family.Workload {
	w.Pace = w.Pace.At(rate, clients)
	return w
}

// Asked is how often it is asked, and the kinds of its requests.
func (w Workload) Asked() family.Asked {
	a := family.Asked{Pace: w.Pace}
	if w.Of == Vault {
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

// Ask is what an agent is asked to do, with what a description names in the user's environment. What is drawn is drawn
// from the workload's name, so that every target is asked the same.
func (w Workload) Ask(e host.Endpoint, t family.Times, from family.Environment) (verb string, body any, err error) {
	sum := sha256.Sum256([]byte(w.Title()))
	seed := binary.LittleEndian.Uint64(sum[:])
	if w.Of == Vault {
		if e.URL == "" {
			return "", nil, result.NotSupported("the target knows of no Vault")
		}
		return vault.Verb, vault.Config{Endpoint: e, Ask: w.Name, Seed: seed, Pace: w.Pace, Times: t}, nil
	}
	c := webapp.Config{Seed: seed, Pace: w.Pace, Times: t}
	if err := w.describe(&c, from); err != nil {
		return "", nil, fmt.Errorf("%s: %w", w, err)
	}
	return webapp.Verb, c, nil
}

// describe adds the description, with what it names in the user's environment.
func (w Workload) describe(c *webapp.Config, from family.Environment) (err error) {
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
