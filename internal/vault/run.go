package vault

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/httpload"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// Verbs of the agent.
const (
	Verb     = "vault"        // measures; its body is a [Config], its result an [httpload.Result]
	TaskVerb = "vault-errand" // initializes or cleans; its body is a [Task], its result an [Outcome]
)

// A Config describes a run.
type Config struct {
	Endpoint host.Endpoint `json:"endpoint"`
	Ask      string        `json:"ask"` // one of [Operations], [Mix] or [Published]
	Load     httpload.Load `json:"load"`
	Limit    time.Duration `json:"limit"` // ns, of the whole run
	Seed     uint64        `json:"seed"`
}

// Redacted returns the configuration without its secrets, for the results directory.
func (c Config) Redacted() any {
	c.Endpoint = c.Endpoint.Redacted()
	return c
}

// warmConnections is how many connections to each address are open before an open loop begins.
const warmConnections = 8

// Run sends the workload's requests to the transit engine of a Vault, in a mount that it creates and removes. A seal or
// an election during the run makes the result invalid. Errors of Vault wrap [ErrVault].
func Run(ctx context.Context, c Config) (httpload.Result, error) {
	all, err := replicas(c.Endpoint)
	if err != nil {
		return httpload.Result{}, err
	}
	before, err := readyStates(ctx, all)
	if err != nil {
		return httpload.Result{}, err
	}
	all, before, pinned, err := onlyLeader(c.Endpoint, all, before)
	if err != nil {
		return httpload.Result{}, err
	}
	lead := leaderIndex(before)
	limited, cancel := context.WithTimeoutCause(ctx, c.Limit,
		fmt.Errorf("the run has not ended after %v, and its mount may soon be cleaned", c.Limit))
	defer cancel()
	m, err := newMount(limited, all[lead], before[lead].now().Add(c.Limit+askTime))
	if err != nil {
		return httpload.Result{}, err
	}
	got, err := c.measure(limited, m, all, before)
	// The mount is removed even if ctx has ended.
	if left := m.removeByAny(context.WithoutCancel(ctx), all); left != nil {
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

// readyStates returns the states of all replicas. It is an error if one of them cannot be measured, or if they belong
// to different Vaults.
func readyStates(ctx context.Context, all []*replica) ([]state, error) {
	states, errs := readStates(ctx, all)
	for i, r := range all {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if err := states[i].checkReady(r.address); err != nil {
			return nil, err
		}
		if states[i].Address != states[0].Address && states[i].HA && states[0].HA {
			return nil, fmt.Errorf("%w: %s and %s have different leaders, %s and %s: they are not one Vault",
				ErrVault, all[0].address, r.address, states[0].Address, states[i].Address)
		}
	}
	return states, nil
}

// leaderIndex returns the index of the leader, or 0 if the leader is not in the list.
func leaderIndex(states []state) int {
	return max(0, slices.IndexFunc(states, func(s state) bool { return s.HA && s.Self }))
}

// onlyLeader removes all replicas but the leader if the endpoint asks for that; pinned reports whether it does.
func onlyLeader(e host.Endpoint, all []*replica, states []state) (_ []*replica, _ []state, pinned bool, err error) {
	if !e.Leader {
		return all, states, false, nil
	}
	i := leaderIndex(states)
	if states[i].HA && !states[i].Self {
		return nil, nil, false, fmt.Errorf("%w: the leader %s is none of the addresses that are given; name it among them, "+
			"or have all asked", ErrVault, states[i].Address)
	}
	return all[i : i+1], states[i : i+1], true, nil
}

// measure prepares the requests, checks that every replica answers, and sends them.
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
		if err := m.tryEncrypt(ctx, r); err != nil {
			return httpload.Result{}, err
		}
	}
	server := all[0].server
	server.Addresses = nil
	for _, r := range all {
		server.Addresses = append(server.Addresses, r.address)
	}
	w := watch(ctx, all, before)
	got, err := httpload.SearchAndRun(ctx, c.loadConfig(server, &source{seed: c.Seed, names: names, list: list}))
	invalid, warnings := w.close(ctx)
	if err != nil && len(invalid) > 0 {
		err = fmt.Errorf("%s: %w", result.Joined(invalid), err)
	}
	got.Invalid, got.Warnings = append(got.Invalid, invalid...), append(got.Warnings, warnings...)
	return got, err
}

// publishedTimeout replaces the timeout of requests in published measurements, which set none: a minute, as in Vault's
// own client.
const publishedTimeout = time.Minute

// Operations lists the operations of the transit engine, in the order of the reports.
var Operations = []string{"encrypt", "decrypt", "sign", "verify"}

// Workloads that mix the operations.
const (
	Mix       = "mix"       // a quarter of each operation
	Published = "published" // the mix as published measurements have it
)

// loadConfig returns the generator's configuration. Published measurements have no warm-up.
func (c Config) loadConfig(server httpload.Server, from httpload.Source) httpload.Config {
	w := c.Load.Config(server, from)
	w.Connections = warmConnections * len(server.Addresses)
	if c.Ask == Published {
		w.Warmup, w.Timeout = 0, publishedTimeout
	}
	return w
}

// tryEncrypt checks that a replica answers a request. It retries for some 2 s, because a standby learns of the new
// mount with a delay. A standby that redirects clients is an error: the run would measure redirections.
func (m *mount) tryEncrypt(ctx context.Context, r *replica) error {
	const tries, pause = 20, 100 * time.Millisecond
	var err error
	for range tries {
		err = r.send(ctx, "POST", m.name+"/encrypt/"+keyName, map[string]any{"plaintext": "YQ=="}, nil)
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
		case <-time.After(pause):
		}
	}
	return err
}

// facts returns what a reader must know about the Vault that was measured.
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

// idleTimeout is how long a Vault without load may take to answer.
const idleTimeout = 10 * time.Second

// ErrNoAnswer means that no Vault answers this machine; it may answer another one.
var ErrNoAnswer = errors.New("no Vault answers here")

// CheckReachable returns an error if the Vault at an endpoint cannot be measured from this machine.
func CheckReachable(ctx context.Context, e host.Endpoint) error {
	all, err := replicas(e)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, idleTimeout)
	defer cancel()
	if _, err := readyStates(limited, all); err != nil {
		return fmt.Errorf("the Vault at %s: %w; see that it answers, or name another with vault= or VAULT_ADDR", e.URL, err)
	}
	return nil
}

// Clean removes the mounts that runs left at an endpoint, through the first replica that answers, and returns their
// names. If no Vault answers, the error wraps [ErrNoAnswer].
func Clean(ctx context.Context, e host.Endpoint, how targets.Cleaning) ([]string, error) {
	all, err := replicas(e)
	if err != nil {
		return nil, err
	}
	var by *replica
	var left []leftMount
	var failures []error
	noAnswer := ErrNoAnswer
	for _, by = range all {
		if left, err = by.leftMounts(ctx); err == nil {
			break
		}
		if isVaultError(err) {
			noAnswer = nil
		}
		failures = append(failures, err)
	}
	if err != nil {
		return nil, errors.Join(append(failures, noAnswer)...)
	}
	var removed []string
	var errs []error
	now := by.clock(ctx)
	for _, l := range left {
		name := "mount " + l.name + " of Vault at " + e.URL
		if !how.Report(name, l.inUse(now)) {
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
