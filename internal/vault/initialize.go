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

// A Task is work on a Vault for an agent that can reach it. It initializes a Vault that was just deployed, whose
// endpoint has the address of each replica and no token; with Clean it removes what runs left in a Vault.
type Task struct {
	Endpoint host.Endpoint `json:"endpoint"`
	Clean    bool          `json:"clean,omitempty"`
	All      bool          `json:"all,omitempty"`     // with Clean: also mounts that may be in use
	DryRun   bool          `json:"dry_run,omitempty"` // with Clean: remove nothing
	Timeout  time.Duration `json:"timeout"`           // ns, above 0
}

// An Outcome is the result of a [Task]: the root token of an initialized Vault, or what cleaning found and the names of
// what it removed. The unseal key is kept nowhere, because the Vault lives only as long as its pods.
type Outcome struct {
	Token   string             `json:"token,omitempty"`
	Found   []targets.Leftover `json:"found,omitempty"`
	Removed []string           `json:"removed,omitempty"`
	Error   string             `json:"error,omitempty"`
}

// Run does the task and returns its outcome, with its failure in Error. It returns an error only for an invalid task.
func (e Task) Run(ctx context.Context) (Outcome, error) {
	if !e.Clean && len(e.Endpoint.Addresses) == 0 || e.Timeout <= 0 {
		return Outcome{}, fmt.Errorf("%w: invalid specification of what to do", ErrVault)
	}
	limited, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	said, err := e.run(limited)
	if err != nil {
		said.Error = err.Error()
	}
	return said, nil
}

func (e Task) run(ctx context.Context) (Outcome, error) {
	if e.Clean {
		var said Outcome
		var err error
		said.Removed, err = Clean(ctx, e.Endpoint, targets.Cleaning{All: e.All,
			DryRun: e.DryRun, Found: func(l targets.Leftover) {
				said.Found = append(said.Found, l)
			}})
		return said, err
	}
	token, err := Initialize(ctx, e.Endpoint)
	if err != nil {
		return Outcome{}, err // the token is dropped, if there is one
	}
	return Outcome{Token: token}, nil
}

// Initialize initializes the first replica with one key, joins the others to it, unseals all, waits until one leads and
// the others follow, and returns the root token.
func Initialize(ctx context.Context, e host.Endpoint) (string, error) {
	all, err := replicas(e)
	if err != nil {
		return "", err
	}
	var keys struct {
		Keys  []string `json:"keys_base64"`
		Token string   `json:"root_token"`
	}
	if err := all[0].awaitAnswer(ctx); err != nil {
		return "", err
	}
	if err := all[0].send(ctx, "PUT", "sys/init", map[string]any{"secret_shares": 1, "secret_threshold": 1},
		&keys); err != nil {
		return "", fmt.Errorf("initialise: %w", err)
	}
	if len(keys.Keys) != 1 {
		return "", fmt.Errorf("%w: %s gave %d keys, not one", ErrVault, all[0].address, len(keys.Keys))
	}
	for i, r := range all {
		if err := r.unseal(ctx, all[0], i > 0, keys.Keys[0]); err != nil {
			return "", err
		}
	}
	return keys.Token, awaitLeader(ctx, all)
}

// retryPause is the time between two attempts at a Vault that is starting.
const retryPause = 200 * time.Millisecond

// awaitAnswer waits until a replica answers, whatever its state.
func (r *replica) awaitAnswer(ctx context.Context) error {
	return retry(ctx, func() error { _, err := r.readState(ctx); return err })
}

// retry calls do until it succeeds or ctx ends; the error then wraps the last one of do.
func retry(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(retryPause):
		}
	}
}

// unseal joins a replica to the first one, if joins is set, unseals it and waits until it is ready.
func (r *replica) unseal(ctx context.Context, first *replica, joins bool, key string) error {
	if err := r.awaitAnswer(ctx); err != nil {
		return err
	}
	if joins {
		err := retry(ctx, func() error { return r.join(ctx, first) })
		if err != nil {
			return fmt.Errorf("join: %w", err)
		}
	}
	return retry(ctx, func() error {
		if err := r.send(ctx, "PUT", "sys/unseal", map[string]any{"key": key}, nil); err != nil {
			return fmt.Errorf("unseal: %w", err)
		}
		// A replica that joins is unsealed after the leader's challenge, with a delay.
		s, err := r.readState(ctx)
		if err == nil {
			err = s.checkReady(r.address)
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
	if err := r.send(ctx, "POST", "sys/storage/raft/join", ask, &said); err != nil {
		return err
	}
	if !said.Joined {
		return fmt.Errorf("%w: %s did not join %s", ErrVault, r.address, first.address)
	}
	return nil
}

// awaitLeader waits until one replica leads and all others are standbys.
func awaitLeader(ctx context.Context, all []*replica) error {
	return retry(ctx, func() error {
		states, err := readyStates(ctx, all)
		if err != nil {
			return err
		}
		if len(all) > 1 && !slices.ContainsFunc(states, func(s state) bool { return s.Self }) {
			return fmt.Errorf("%w: no replica leads yet", ErrVault)
		}
		var errs []error
		for i, s := range states {
			if s.HA && !s.Self && !s.Standby {
				errs = append(errs, fmt.Errorf("%w: %s neither leads nor follows", ErrVault, all[i].address))
			}
		}
		return errors.Join(errs...)
	})
}
