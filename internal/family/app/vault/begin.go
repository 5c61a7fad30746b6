package vault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// An Errand is what has to be done at a Vault by who reaches it. Either one was just deployed and is to begin: its
// endpoint has no token, but the address of each replica, of which the first one is initialised and the others join it.
// Or what runs left there is to be removed.
type Errand struct {
	Endpoint host.Endpoint `json:"endpoint"`
	Clean    bool          `json:"clean,omitempty"`
	All      bool          `json:"all,omitempty"`     // when cleaning, also mounts that may be in use
	DryRun   bool          `json:"dry_run,omitempty"` // when cleaning, remove nothing
	Patience time.Duration `json:"patience"`          // ns, until it is done
}

// An Outcome is what became of an errand: the token of a Vault that works, whose key is kept nowhere, since that Vault
// lasts as long as its pods; or what was found when cleaning, and the names of what was removed.
type Outcome struct {
	Token   string             `json:"token,omitempty"`
	Found   []targets.Leftover `json:"found,omitempty"`
	Removed []string           `json:"removed,omitempty"`
	Error   string             `json:"error,omitempty"`
}

// Run runs the errand; what went wrong is in the outcome. An error means that it is none.
func (e Errand) Run(ctx context.Context) (Outcome, error) {
	if !e.Clean && len(e.Endpoint.Addresses) == 0 || e.Patience <= 0 {
		return Outcome{}, fmt.Errorf("%w: invalid specification of what to do", ErrVault)
	}
	limited, cancel := context.WithTimeout(ctx, e.Patience)
	defer cancel()
	said, err := e.run(limited)
	if err != nil {
		said.Error = err.Error()
	}
	return said, nil
}

func (e Errand) run(ctx context.Context) (Outcome, error) {
	if e.Clean {
		var said Outcome
		var err error
		said.Removed, err = Clean(ctx, e.Endpoint, targets.Cleaning{All: e.All,
			DryRun: e.DryRun, Found: func(l targets.Leftover) {
				said.Found = append(said.Found, l)
			}})
		return said, err
	}
	token, err := Begin(ctx, e.Endpoint)
	if err != nil {
		return Outcome{}, err // no token of a Vault that does not work
	}
	return Outcome{Token: token}, nil
}

// Begin initialises the first replica with one key, has the others join it, unseals all and waits until they work. It
// returns the root token.
func Begin(ctx context.Context, e host.Endpoint) (string, error) {
	all, err := replicas(e)
	if err != nil {
		return "", err
	}
	var keys struct {
		Keys  []string `json:"keys_base64"`
		Token string   `json:"root_token"`
	}
	if err := all[0].listens(ctx); err != nil {
		return "", err
	}
	if err := all[0].ask(ctx, "PUT", "sys/init", map[string]any{"secret_shares": 1, "secret_threshold": 1},
		&keys); err != nil {
		return "", fmt.Errorf("initialise: %w", err)
	}
	if len(keys.Keys) != 1 {
		return "", fmt.Errorf("%w: %s gave %d keys, not one", ErrVault, all[0].address, len(keys.Keys))
	}
	for i, r := range all {
		if err := r.enter(ctx, all[0], i > 0, keys.Keys[0]); err != nil {
			return "", err
		}
	}
	return keys.Token, settled(ctx, all)
}

// beginPause lies between two looks at a Vault that is on its way.
const beginPause = 200 * time.Millisecond

// listens waits until a replica answers at all.
func (r *replica) listens(ctx context.Context) error {
	return until(ctx, func() error { _, err := r.look(ctx); return err })
}

// until tries until it works or the time is up; the error is then the last one.
func until(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(beginPause):
		}
	}
}

// enter unseals a replica, which joins the first one before unless it is that.
func (r *replica) enter(ctx context.Context, first *replica, joins bool, key string) error {
	if err := r.listens(ctx); err != nil {
		return err
	}
	if joins {
		err := until(ctx, func() error { return r.join(ctx, first) })
		if err != nil {
			return fmt.Errorf("join: %w", err)
		}
	}
	return until(ctx, func() error {
		if err := r.ask(ctx, "PUT", "sys/unseal", map[string]any{"key": key}, nil); err != nil {
			return fmt.Errorf("unseal: %w", err)
		}
		// One that joins is unsealed by the leader's challenge, which takes a moment.
		s, err := r.look(ctx)
		if err == nil {
			err = s.able(r.address)
		}
		return err
	})
}

func (r *replica) join(ctx context.Context, first *replica) error {
	scheme := "http"
	ask := map[string]any{}
	if r.server.TLS != nil {
		scheme = "https"
		ask["leader_tls_servername"] = r.server.TLS.ServerName
		ask["leader_ca_cert"] = string(r.ca)
	}
	ask["leader_api_addr"] = scheme + "://" + first.address
	var said struct{ Joined bool }
	if err := r.ask(ctx, "POST", "sys/storage/raft/join", ask, &said); err != nil {
		return err
	}
	if !said.Joined {
		return fmt.Errorf("%w: %s did not join %s", ErrVault, r.address, first.address)
	}
	return nil
}

// settled waits until one replica leads and all others follow it.
func settled(ctx context.Context, all []*replica) error {
	return until(ctx, func() error {
		states, err := ready(ctx, all)
		if err != nil {
			return err
		}
		if len(all) > 1 && !slices.ContainsFunc(states, func(s state) bool { return s.Self }) {
			return fmt.Errorf("%w: no replica leads yet", ErrVault)
		}
		return errors.Join(errs(all, states)...)
	})
}

// errs are the replicas that have not found their place yet.
func errs(all []*replica, states []state) []error {
	var list []error
	for i, s := range states {
		if s.HA && !s.Self && !s.Standby {
			list = append(list, fmt.Errorf("%w: %s neither leads nor follows", ErrVault, all[i].address))
		}
	}
	return list
}
