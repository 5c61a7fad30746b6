package vault

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/httpload"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// Verbs of the agent.
const (
	Verb       = "vault"        // measures: a [Config] is its body, an [httpload.Result] its result
	ErrandVerb = "vault-errand" // an [Errand] is its body, an [Outcome] its result
)

// A Config is a run.
type Config struct {
	Endpoint host.Endpoint `json:"endpoint"`
	Ask      string        `json:"ask"` // one of Operations, Mix or Published
	Pace     family.Pace   `json:"pace"`
	Times    family.Times  `json:"times"`
	Seed     uint64        `json:"seed"`
}

// Open is the configuration without its secrets, to be kept.
func (c Config) Open() any {
	c.Endpoint = c.Endpoint.Open()
	return c
}

// warmConnections are open before an open loop begins, to each address.
const warmConnections = 8

// Run asks the transit engine of a Vault what the workload says, in a mount of its own, which is gone when it returns.
// A seal or an election meanwhile makes the result invalid. Errors of Vault are ErrVault.
func Run(ctx context.Context, c Config) (httpload.Result, error) {
	all, err := replicas(c.Endpoint)
	if err != nil {
		return httpload.Result{}, err
	}
	before, err := ready(ctx, all)
	if err != nil {
		return httpload.Result{}, err
	}
	all, before, pinned, err := pin(c.Endpoint, all, before)
	if err != nil {
		return httpload.Result{}, err
	}
	lasts, leader := c.Pace.Limits(0).Bound(c.Times, mountSpare), chief(before)
	limited, cancel := context.WithTimeoutCause(ctx, lasts,
		fmt.Errorf("the run has not ended after %v, and its mount may soon be cleaned", lasts))
	defer cancel()
	m, err := newMount(limited, all[leader], before[leader].now().Add(lasts+askTime))
	if err != nil {
		return httpload.Result{}, err
	}
	got, err := c.measure(limited, m, all, before)
	// Who gave up has a right to a clean Vault too.
	if left := m.leave(context.WithoutCancel(ctx), all); left != nil {
		got.Warnings = append(got.Warnings, result.Warning{Code: result.ObjectsLeft, Text: left.Error()})
	}
	if err == nil {
		got.Facts = facts(c.Endpoint, all, before, pinned)
		if c.Ask == Published {
			got.Facts["vault.published"] = "without warm-up, as published; over HTTP/1.1, where each client has a connection"
			got.Facts["vault.text"] += ", " + strconv.Itoa(publishedDecrypted) + " B to decrypt"
			got.Facts["vault.verified"] = publishedSignature
		}
	}
	return got, err
}

// ready asks all replicas how they are; each must be able to answer.
func ready(ctx context.Context, all []*replica) ([]state, error) {
	states, errs := roll(ctx, all)
	for i, r := range all {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if err := states[i].able(r.address); err != nil {
			return nil, err
		}
		if states[i].Address != states[0].Address && states[i].HA && states[0].HA {
			return nil, fmt.Errorf("%w: %s and %s have different leaders, %s and %s: they are not one Vault",
				ErrVault, all[0].address, r.address, states[0].Address, states[i].Address)
		}
	}
	return states, nil
}

// chief is the leader's place in a list, or the first where it is not in it.
func chief(states []state) int {
	return max(0, slices.IndexFunc(states, func(s state) bool { return s.HA && s.Self }))
}

// pin leaves the leader alone where the endpoint says so.
func pin(e host.Endpoint, all []*replica, states []state) ([]*replica, []state, bool, error) {
	if !e.Leader {
		return all, states, false, nil
	}
	i := chief(states)
	if states[i].HA && !states[i].Self {
		return nil, nil, false, fmt.Errorf("%w: the leader %s is none of the addresses that are given; name it among them, "+
			"or have all asked", ErrVault, states[i].Address)
	}
	return all[i : i+1], states[i : i+1], true, nil
}

// measure prepares the requests, checks that every replica answers them, and has them sent.
func (c Config) measure(ctx context.Context, m *mount, all []*replica, before []state) (httpload.Result, error) {
	names := Operations
	if slices.Contains(names, c.Ask) {
		names = []string{c.Ask}
	}
	list, err := m.requests(ctx, names, c.Ask == Published)
	if err != nil {
		return httpload.Result{}, err
	}
	for _, r := range all {
		if err := m.tried(ctx, r); err != nil {
			return httpload.Result{}, err
		}
	}
	server := all[0].server
	server.Addresses = nil
	for _, r := range all {
		server.Addresses = append(server.Addresses, r.address)
	}
	w := watch(ctx, all, before)
	got, err := httpload.Do(ctx, c.load(server, &source{seed: c.Seed, names: names, list: list}))
	invalid, warnings := w.close(ctx)
	if err != nil && len(invalid) > 0 {
		err = fmt.Errorf("%s: %w", result.Joined(invalid), err)
	}
	got.Invalid, got.Warnings = append(got.Invalid, invalid...), append(got.Warnings, warnings...)
	return got, err
}

// The published measurements count from the first request on, and end none themselves. That of a client of Vault's own
// gets a minute.
const publishedTimeout = time.Minute

// Operations are what can be asked of the transit engine, in the order of the reports.
var Operations = []string{"encrypt", "decrypt", "sign", "verify"}

// Mix is a quarter of each of the operations, and Published the mix as it was measured for publications.
const (
	Mix       = "mix"
	Published = "published"
)

// load is the run for the generator.
func (c Config) load(server httpload.Server, from httpload.Source) httpload.Config {
	w := httpload.Config{
		Server: server, Source: from, Rate: c.Pace.Rate, Clients: c.Pace.Clients,
		Knee: c.Pace.Knee, MostClients: c.Pace.MostClients,
		Connections: warmConnections * len(server.Addresses), Seed: c.Times.Seed,
		Warmup: c.Times.Warmup, Window: c.Times.Window,
		Distress: httpload.Distress,
	}
	if c.Ask == Published {
		w.Warmup, w.Timeout = 0, publishedTimeout
	}
	return w
}

// tried asks a replica once. A standby that sends clients away instead of passing requests on would make of the run a
// measurement of redirections. A standby that has not heard of the new mount yet gets a moment.
func (m *mount) tried(ctx context.Context, r *replica) error {
	const tries, apart = 20, 100 * time.Millisecond
	var err error
	for range tries {
		err = r.ask(ctx, "POST", m.name+"/encrypt/"+keyName, map[string]any{"plaintext": "YQ=="}, nil)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if s := statusOf(err); s == http.StatusTemporaryRedirect {
			return fmt.Errorf("%w; this standby redirects clients to the leader instead of passing requests on, so that "+
				"asking it measures redirections: name only the leader, or have it pinned", err)
		} else if s != http.StatusNotFound && s < 500 {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(apart):
		}
	}
	return err
}

// facts are what a reader must know of the Vault behind a figure.
func facts(e host.Endpoint, all []*replica, states []state, pinned bool) map[string]string {
	f := map[string]string{
		"vault.version": states[0].Version, "vault.ha": "no", "vault.tls": "no",
		"vault.key": keyType, "vault.text": strconv.Itoa(textSize) + " B",
		"vault.addresses": strconv.Itoa(len(all)), "vault.forwarding": "none: who is asked answers",
	}
	if all[0].server.TLS != nil {
		f["vault.tls"] = "yes"
	}
	if e.Namespace != "" {
		f["vault.namespace"] = e.Namespace
	}
	if !states[0].HA {
		f["vault.asked"] = "the only server"
		return f
	}
	f["vault.ha"], f["vault.leader"] = "yes", states[0].Address
	f["vault.asked"] = "every address in turn"
	standbys := 0
	for _, s := range states {
		if s.Standby {
			standbys++
		}
	}
	switch {
	case pinned:
		f["vault.asked"] = "the leader alone"
	case standbys > 0:
		f["vault.forwarding"] = fmt.Sprintf("%d of %d addresses are standbys, which pass requests on to the leader",
			standbys, len(all))
	case len(all) == 1 && len(e.Addresses) == 0:
		f["vault.forwarding"] = "unknown: one address, behind which there may be several replicas"
	}
	return f
}

// silence is how long a Vault without load may take to answer.
const silence = 10 * time.Second

// ErrSilent is that no Vault answers where it is asked from; elsewhere one may.
var ErrSilent = errors.New("no Vault answers here")

// Reach says why the Vault at an endpoint cannot be asked from here, if it cannot.
func Reach(ctx context.Context, e host.Endpoint) error {
	all, err := replicas(e)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	if _, err := ready(limited, all); err != nil {
		return fmt.Errorf("the Vault at %s: %w; see that it answers, or name another with vault= or VAULT_ADDR", e.URL, err)
	}
	return nil
}

// Clean removes the mounts that runs left at an endpoint, and returns their names. Any replica that answers does; the
// error Is ErrSilent where none does.
func Clean(ctx context.Context, e host.Endpoint, how targets.Cleaning) ([]string, error) {
	all, err := replicas(e)
	if err != nil {
		return nil, err
	}
	var by *replica
	var left []leftMount
	var deaf []error
	silent := ErrSilent
	for _, by = range all {
		if left, err = by.leftover(ctx); err == nil {
			break
		}
		if byVault(err) {
			silent = nil
		}
		deaf = append(deaf, err)
	}
	if err != nil {
		return nil, errors.Join(append(deaf, silent)...)
	}
	var removed []string
	var errs []error
	now := by.clock(ctx)
	for _, l := range left {
		name := "mount " + l.name + " of Vault at " + e.URL
		if !how.Report(name, l.kept(now)) {
			continue
		}
		if err := (&mount{by, l.name}).remove(ctx); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, name)
	}
	return removed, errors.Join(errs...)
}
